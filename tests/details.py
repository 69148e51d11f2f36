"""The less common figures that a source may be asked for."""

from __future__ import annotations

from gpu_tracker.live.smi_names import GPU_FIELDS

EVERY_DETAIL = tuple(field.name for field in GPU_FIELDS if field.needs_details)

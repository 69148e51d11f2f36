"""The module that has these names in gpu-tracker 5."""

from __future__ import annotations

from .analysis.sub_tracking import CodeBlockResults as CodeBlockResults
from .api.code_blocks import SubTracker as SubTracker, sub_track as sub_track
from .api.sub_tracking import (
    ComparisonResults as ComparisonResults,
    SubTrackingAnalyzer as SubTrackingAnalyzer,
    SubTrackingResults as SubTrackingResults,
    TrackingComparison as TrackingComparison,
)

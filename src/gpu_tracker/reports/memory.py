"""Memory as it is now, and what was given back, in words and as bars for a notebook. Pure."""

from __future__ import annotations

from ..analysis.frameworks import PARTS
from ..core.text import neutralize
from ..core.units import humanize_bytes, humanize_limit
from ..core.values import NamedTuple
from .html import fragments
from .svg import COLOURS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..analysis.memory import GpuMemory, RamMemory

# Of the parts of a device: the same as in charts; what is free has none.
_SLICES = (*COLOURS[:4], "transparent")
_OUTLINE = "border:1px solid #767676"


class Memory(NamedTuple):
    """The memory of this process and of the devices that it may use, at one moment. `print` shows it in words."""

    ram: RamMemory
    gpus: tuple[GpuMemory, ...]

    def __str__(self) -> str:
        return "\n".join(_list_sentences(self))

    def _repr_pretty_(self, printer: Any, _cycle: object) -> None:
        printer.text(str(self))  # where IPython has no HTML

    def _repr_html_(self) -> str:
        gpus = "".join(f"<p>{fragments.text(describe_gpu(gpu))}</p>{_draw_bar(gpu)}" for gpu in self.gpus)
        return f"<p>{fragments.text(describe_ram(self.ram))}</p>{gpus}"


class Step(NamedTuple):
    """Something that was done to get memory back, and what it gave. Sizes are without what other threads took meanwhile."""

    name: str
    n_objects: int
    """How many frames, objects or variables it took away."""
    ram_bytes: int | None
    """Given back to the operating system by this process."""
    tensors_bytes: int | None
    """No longer in use by tensors on devices."""
    gpu_bytes: int | None
    """Given back to the driver by frameworks."""


class Reclaimed(NamedTuple):
    """What `reclaim()` did. `print` shows it in words."""

    steps: tuple[Step, ...]
    cached_bytes: int | None
    """What frameworks still keep for reuse."""

    def __str__(self) -> str:
        lines = [describe_step(step) for step in self.steps]
        if self.cached_bytes:
            lines.append(
                f"still cached for reuse: {humanize_bytes(self.cached_bytes)} "
                "(reclaim(empty_cache=True) returns what is not in use to the driver)"
            )
        return "\n".join(lines)

    def _repr_pretty_(self, printer: Any, _cycle: object) -> None:
        printer.text(str(self))  # where IPython has no HTML

    def _repr_html_(self) -> str:
        return fragments.statements(str(self).splitlines())


def _list_sentences(memory: Memory) -> list[str]:
    return [describe_ram(memory.ram), *map(describe_gpu, memory.gpus)]


def describe_ram(ram: RamMemory) -> str:
    """This process, its tree, and the capacity."""
    tree = ""
    if ram.tree_bytes is not None and _name(ram.tree_bytes) != _name(ram.process_bytes):
        tree = f", with its descendants {humanize_bytes(ram.tree_bytes)}"
    capacity = "" if ram.capacity_bytes is None else f"{',' if tree else ''} of {_name_capacity(ram)}"
    return f"RAM: this process holds {_name(ram.process_bytes)}{tree}{capacity}"


def _name_capacity(ram: RamMemory) -> str:
    size = ram.capacity_bytes or 0
    if ram.capacity_source == "machine":
        return humanize_bytes(size)
    return f"{humanize_limit(size)} ({neutralize(ram.capacity_source)} limit)"


def describe_gpu(gpu: GpuMemory) -> str:
    """What the process holds and for what, then the rest of the device."""
    of = "" if gpu.total_bytes is None else f" of {humanize_limit(gpu.total_bytes)}"
    sizes = dict(zip(PARTS, gpu.parts, strict=True))
    inside = [text for name in PARTS[:3] if (text := _name_part(gpu, name, sizes[name]))]
    outside = [f"; {name} {humanize_bytes(size)}" for name in PARTS[3:] if (size := sizes[name]) is not None]
    colon = ": " if inside else ""
    return (
        f"GPU {gpu.label}: this process holds {_name(gpu.process_bytes)}{of}"
        f"{colon}{', '.join(inside)}{''.join(outside)}"
    )


def _name_part(gpu: GpuMemory, name: str, size: int | None) -> str:
    if size is None:
        return ""
    has_peak = name == PARTS[0] and gpu.peak_tensors_bytes is not None
    peak = f" (peak {humanize_bytes(gpu.peak_tensors_bytes or 0)})" if has_peak else ""
    return f"{name} {humanize_bytes(size)}{peak}"


def _name(size: int | None) -> str:
    return "an unknown amount" if size is None else humanize_bytes(size)


def _draw_bar(gpu: GpuMemory) -> str:
    """A stack of the parts. Styles in elements are kept where a notebook is not trusted; those in `<style>` are not."""
    known = [(size, colour) for size, colour in zip(gpu.parts, _SLICES, strict=True) if size]
    total = sum(size for size, _ in known)
    slices = "".join(
        f'<div style="width:{100 * size / total:.2f}%;height:100%;float:left;background:{colour}"></div>'
        for size, colour in known
    )
    return f'<div style="width:30em;height:1em;{_OUTLINE}">{slices}</div>' if slices else ""


def describe_step(step: Step) -> str:
    """What was done, and what came of it."""
    return f"{step.name}: {name_given_back(step)} given back"


def name_given_back(step: Step) -> str:
    """The sizes, or that there are none."""
    gave = [
        f"{name} {humanize_bytes(size)}"
        for name, size in (
            ("RAM", step.ram_bytes),
            ("tensors", step.tensors_bytes),
            ("GPU memory", step.gpu_bytes),
        )
        if size is not None and size > 0
    ]
    return ", ".join(gave) or "nothing"

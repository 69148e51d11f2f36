"""The table that `watch` draws."""

from __future__ import annotations

import pytest

from gpu_tracker.core.observation import BROKEN, Holder, MachineState, Missing, VendorState
from gpu_tracker.core.text import DIM, GREEN, PLAIN, RED, YELLOW, count_cells, paint
from gpu_tracker.live.screen import build_screen
from observed import gpu, observation, process, reading, vendor


def draw(*arguments: object, columns: int = 120, rows: int | None = None) -> list[str]:
    """The lines without their styles."""
    before, now = arguments
    return [
        paint(line, columns, has_colour=False).rstrip()
        for line in build_screen(before, now, "title", rows)  # type: ignore[arg-type]
    ]


def test_the_screen_shows_machine_devices_and_processes() -> None:
    """In this order."""
    seen = vendor(reading(0), reading(1, used_bytes=0), processes=(process(),))

    assert draw(observation(seen, at=100.0), observation(seen, at=102.0)) == [
        "title",
        "CPU 50 % of 8 cores   RAM 25 % of 64 GB, 16 GB used",
        "",
        "GPU   MEMORY / MiB   MEM  BUSY  TEMP  POWER  NAME",
        "  0  10240 / 40960  25 %  55 %  61 C  250 W  NVIDIA A100",
        "  1      0 / 40960   0 %  55 %  61 C  250 W  NVIDIA A100",
        "",
        "GPU   PID  USER   MiB    SM    CPU   RAM  COMMAND",
        "  0  4242  anna  1234  50 %  200 %  2 GB  python train.py",
    ]


def test_an_unknown_value_is_a_dash() -> None:
    """Not zero."""
    blind = reading(used_bytes=None, utilization_percent=None, temperature_celsius=None, power_watts=None)
    seen = vendor(blind, processes=(process(pid=9, mib=None, percent=None),), gpus=(gpu(memory_bytes=None),))
    lines = draw(None, observation(seen, machine=MachineState(8, None)))

    assert lines[1] == "CPU - of 8 cores   RAM - of -, - used"
    assert lines[4].split() == ["0", "-", "/", "-", "-", "-", "-", "-", "NVIDIA", "A100"]
    assert lines[7].split() == ["0", "9", "-", "-", "-", "-", "-", "-"]


def test_missing_gpus_and_problems_are_reported() -> None:
    """With the command that shows more."""
    broken = VendorState("nvidia", missing=(Missing("nvml", BROKEN, "The driver\x1b[2J is broken."),))
    lines = draw(None, observation(broken))

    assert "gpu-tracker doctor" in lines[3]
    assert lines[4] == "note: The driver?[2J is broken."


@pytest.mark.parametrize("columns", [1, 7, 20, 40, 79])
def test_nothing_is_wider_than_the_terminal(columns: int) -> None:
    """Including commands of ten kilobytes and wide characters."""
    holder = Holder(4242, "日本" * 9, ("日本語", "x" * 10_000), 1, 1.0)
    seen = observation(vendor(reading(), processes=(process(),)), holders=(holder,))

    assert all(count_cells(line) <= columns for line in draw(None, seen, columns=columns))


@pytest.mark.parametrize("rows", [0, 1, 2, 5, 9, 50])
def test_nothing_is_longer_than_the_terminal(rows: int) -> None:
    """What is left out is counted."""
    seen = observation(vendor(reading(), processes=tuple(process(pid=pid) for pid in range(1, 20))))
    lines = draw(None, seen, rows=rows)

    assert len(lines) <= rows
    if 1 <= rows < 26:
        assert lines[-1] == f"({26 - (rows - 1)} more lines)"


def test_hostile_commands_are_harmless() -> None:
    """Escape sequences, newlines and bidirectional overrides do not reach the terminal."""
    holder = Holder(4242, "eve\x1b[31m", ("a\nb", "\x1b]0;title\x07", "\u202ereversed", "\x9b2J"), 1, 1.0)
    seen = observation(vendor(reading(), processes=(process(),)), holders=(holder,))
    lines = draw(None, seen)

    assert lines[-1].endswith("a?b ?]0;title? ?reversed ?2J")
    assert all(line.isprintable() for line in lines)


def test_colours_show_how_busy_a_device_is() -> None:
    """Idle has none; a device that jobs cannot use is dim."""
    shades = {}
    for percent in (0.0, 10.0, 50.0, 99.0):
        seen = observation(vendor(reading(utilization_percent=percent), gpus=(gpu(is_visible=percent > 0),)))
        line = build_screen(None, seen, "")[4]
        shades[percent] = (line[3].style, line[-1].style)

    assert shades == {0.0: (PLAIN, DIM), 10.0: (GREEN, PLAIN), 50.0: (YELLOW, PLAIN), 99.0: (RED, PLAIN)}

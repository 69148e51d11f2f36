"""A run on a full screen."""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import inf, nan
from pathlib import Path
from typing import Any

import pytest

from gpu_tracker.analysis.findings.finding import CERTAIN, NOTE, SERIOUS, Finding
from gpu_tracker.analysis.forecast import Forecast
from gpu_tracker.core.text import RED, Span, count_cells, paint, to_ascii
from gpu_tracker.core.units import BYTES
from gpu_tracker.live.controls import SPANS, Controls
from gpu_tracker.live.scene import CORES, Metric, OpenRegion, Process, Scene
from gpu_tracker.live.top import Look, build_frame
from live.scenes import make_scene, make_series

GOLDEN = Path(__file__).parent / "golden"
FRAMES: dict[str, tuple[int, Look, dict[str, Any]]] = {
    "60x20-ascii.txt": (2, Look(60, 20, has_unicode=False), {}),
    "80x24.txt": (1, Look(80, 24), {}),
    "80x24-eight-gpus.txt": (8, Look(80, 24), {"has_colour": True}),
    "200x50.txt": (2, Look(200, 50), {}),
}
ESCAPES = re.compile(r"\x1b\[[0-9;]*m")


def read(lines: Sequence[Sequence[Span]]) -> list[str]:
    """Without styles."""
    return ["".join(span.text for span in line).rstrip() for line in lines]


def show(scene: Scene, columns: int = 80, rows: int = 24, **controls: Any) -> list[str]:
    """A frame of it."""
    return read(build_frame(scene, Controls(**controls), Look(columns, rows)))


@pytest.mark.parametrize("name", FRAMES)
def test_a_whole_frame_looks_like_this(name: str) -> None:
    """To see a change before users do; `GOLDEN` has what was looked at. Without colours nothing is missing."""
    n_gpus, look, view = FRAMES[name]
    lines = build_frame(make_scene(n_gpus), Controls(), look)
    painted = [paint(line, look.columns, **{"has_colour": False, **view}).rstrip() for line in lines]

    assert "\n".join(painted) + "\n" == (GOLDEN / name).read_text("utf-8")
    assert [ESCAPES.sub("", line).rstrip() for line in painted] == read(lines)


@pytest.mark.parametrize("columns", [40, 53, 60, 80, 132, 200])
@pytest.mark.parametrize("rows", [10, 17, 24, 50, 100])
@pytest.mark.parametrize("n_gpus", [0, 1, 8, 16])
def test_a_frame_fits(columns: int, rows: int, n_gpus: int) -> None:
    """Any size, any number of devices."""
    lines = show(make_scene(n_gpus), columns, rows)

    assert len(lines) == rows
    assert max(map(count_cells, lines)) <= columns


def test_ascii_is_enough() -> None:
    """For a terminal that has nothing else; only what cuts a line is left to its writer."""
    lines = read(build_frame(make_scene(2), Controls(), Look(80, 24, has_unicode=False)))

    assert [line.replace("…", "~") for line in lines] == list(map(to_ascii, lines))


@pytest.mark.parametrize(
    ("columns", "rows", "words"),
    [
        (39, 24, "This needs at least 40 columns and 10 rows."),
        (80, 9, "This needs at least 40 columns and 10 rows."),
        (20, 5, "This needs at least 40 columns and 10 rows."),
        (20, 1, "Needs 40x10"),
        (5, 2, "Needs 40x10"),
    ],
)
def test_a_window_that_is_too_small_says_so(columns: int, rows: int, words: str) -> None:
    """With the size that it must have."""
    lines = show(make_scene(), columns, rows)

    assert " ".join(lines) == words
    assert len(lines) <= rows
    assert max(map(count_cells, lines)) <= columns


def test_now_does_not_look_larger_than_the_maximum() -> None:
    """Both have the same digits."""
    series = make_series("CPU", "0.02 of 2 cores", CORES, 2.0, [0.0181] * 725)
    lines = show(make_scene()._replace(series=(series,)))

    assert any("CPU 0.02 of 2 cores  max 0.02" in line and "0.018" not in line for line in lines)


@pytest.mark.parametrize(
    ("scene", "controls", "state"),
    [
        ({}, {}, "LIVE"),
        ({}, {"is_paused": True, "moment": 3.0}, "PAUSED"),
        ({}, {"speed": 60.0, "moment": 3.0}, "REPLAY x60"),
        ({"status": "exit code 0"}, {"speed": 60.0}, "EXIT CODE 0"),
        ({"status": "killed by SIGKILL (9)"}, {}, "killed by SIGKILL (9)"),
        ({"problem": "Cannot read it."}, {}, "LOST"),
    ],
)
def test_the_first_line_says_what_is_seen(
    scene: dict[str, Any], controls: dict[str, Any], state: str
) -> None:
    """Now, then, or once more."""
    first = show(make_scene()._replace(**scene), **controls)[0]

    assert first.startswith(f" {state}  0:12:05  baseline ")
    assert first.endswith(" node7")


def test_before_the_first_sample_there_is_nothing_to_draw() -> None:
    """Or the reason for it."""
    assert show(Scene())[2] == "Waiting for the first sample..."
    assert show(Scene(status="cut off"))[2] == "There are no samples."
    assert show(Scene(problem="Cannot read it."))[2] == "Cannot read it."


def test_a_problem_takes_the_place_of_the_keys() -> None:
    """What was seen last is still there."""
    lines = show(make_scene()._replace(problem="Cannot read run.jsonl: No such file or directory."))

    assert lines[-1] == "Cannot read run.jsonl: No such file or directory."
    assert lines[1].startswith("CPU 5.2 of 8 cores")


def test_the_keys_of_the_moment() -> None:
    """Several runs have one more."""
    lines = read(build_frame(make_scene(), Controls(is_paused=True, span=6, sort=3), Look(120, 24), 3))

    assert lines[-1] == "q quit  ? help  n run 1 of 3  space go on  <- -> time  + - all  s sort by PID"
    assert show(make_scene(), span=3)[-1].endswith("+ - 1 h  s sort by RAM")
    assert show(make_scene(), span=5)[-1].endswith("+ - 1 d  s sort by RAM")


def test_help_lists_all_keys() -> None:
    """Instead of the run."""
    text = "\n".join(show(make_scene(), has_help=True))

    assert "sort processes by RAM, CPU, time, PID" in text
    assert "GPU 0" not in text


@pytest.mark.parametrize("span", range(len(SPANS)))
def test_graphs_show_as_much_time_as_is_chosen(span: int) -> None:
    """But no more than there is."""
    (axis,) = [line for line in show(make_scene(), span=span) if " ago " in line]
    ago = {0: "60 s ago", 1: "5 min ago"}.get(span, "12 min ago")

    assert axis.split("  ")[3].strip() == ago or ago in axis
    assert axis.endswith("at 0:12:05")


@pytest.mark.parametrize(
    ("highest", "capacity", "top"),
    [
        (0.0, 8.0, "8"),
        (0.0, 0.0, "1"),
        (1.1, 8.0, "1.5"),
        (2.0, 8.0, "8"),
        (7.9, 0.0, "8"),
        (9.99, 0.0, "10"),
        (0.03, 8.0, "0.03"),
    ],
)
def test_a_graph_is_as_high_as_it_must_be(highest: float, capacity: float, top: str) -> None:
    """A round number, or all there is if that is not far away."""
    series = make_series("CPU", "now", CORES, capacity, [highest] * 60)
    lines = show(Scene(seconds=60.0, series=(series,)))

    assert lines[2].split("┤")[0].strip() == top


@pytest.mark.parametrize("value", [inf, 1.7e308])
def test_what_no_axis_has_room_for_is_a_gap_in_the_graph(value: float) -> None:
    """Such as the rate of something that took no time; the rest is drawn."""
    series = make_series("CPU", "now", CORES, 8.0, [2.0] * 59 + [value])
    lines = show(Scene(seconds=60.0, series=(series,)))

    assert lines[1].startswith("CPU now  max 2")
    assert lines[2].split("┤")[0].strip() == "8"


def test_a_graph_of_what_is_not_known_is_empty() -> None:
    """Also of a device that has not told anything yet."""
    unknown = make_series("RAM", "-", BYTES, 0.0, [nan] * 60)
    empty = make_series("CPU", "-", CORES, 8.0, [])
    lines = show(Scene(seconds=60.0, series=(unknown, empty)))

    assert not any("█" in line for line in lines)
    assert lines[1].startswith("RAM -  max -")


def test_without_regions_or_processes_the_other_has_the_width() -> None:
    """And without both there are only graphs."""
    scene = make_scene()._replace(forecasts=(), findings=())
    alone = show(scene._replace(regions=(), metrics=()))
    doing = show(scene._replace(largest=()))
    nothing = show(scene._replace(regions=(), metrics=(), largest=()))

    assert any(line.startswith("9 processes, 41 threads ──") and len(line) == 80 for line in alone)
    assert any(line.split() == ["PID", "cores", "peak", "RAM", "CPU", "time", "name"] for line in alone)
    assert any(line.startswith("Regions open now") for line in doing)
    assert not any("process" in line for line in doing)
    assert nothing[-2] == ""


def test_one_process_is_one() -> None:
    """And one thread."""
    lines = show(make_scene()._replace(processes=1, threads=1))

    assert any("1 process, 1 thread ─" in line for line in lines)


def test_metrics_alone_and_regions_alone() -> None:
    """Nobody needs the other."""
    metrics = show(make_scene()._replace(regions=()))
    regions = show(make_scene()._replace(metrics=()))

    assert any(line.startswith("Metrics ──") for line in metrics)
    assert not any("Regions" in line for line in metrics)
    assert not any("Metrics" in line for line in regions)


def test_many_regions_leave_room_for_metrics() -> None:
    """And the other way round."""
    many = make_scene(0)._replace(
        regions=tuple(OpenRegion(f"region {number}", 0, 1.0, 100) for number in range(40)),
        metrics=tuple(Metric(f"metric {number}", (1.0,)) for number in range(40)),
    )
    text = "\n".join(show(many))

    assert "region 1 " in text
    assert "metric 0 " in text


def test_a_metric_that_is_no_number_is_red() -> None:
    """With a gap in its picture while it has been one."""
    scene = make_scene()._replace(metrics=(Metric("loss", (nan, inf)), Metric("other", (1.0, nan, 2.0))))
    lines = build_frame(scene, Controls(), Look(80, 24))
    (bad,) = [span for line in lines for span in line if span.text.startswith("loss")]
    (other,) = [line for line in read(lines) if line.startswith("other")]

    assert (bad.style, bad.text.split()) == (RED, ["loss", "inf"])
    assert "▁ █" in other


@pytest.mark.parametrize(
    ("values", "picture"), [((1.0, inf, 2.0), "▁ █"), ((2.0, -inf, 1.0), "█ ▁"), ((-1.7e308, 1.7e308), "▁█")]
)
def test_a_metric_may_be_of_any_size(values: tuple[float, ...], picture: str) -> None:
    """A training that diverges is when somebody looks."""
    scene = make_scene()._replace(metrics=(Metric("loss", values),))

    (line,) = [line for line in show(scene, 80, 24) if line.startswith("loss")]

    assert picture in line


def test_a_narrow_column_has_no_picture() -> None:
    """Names and numbers are worth more."""
    scene = make_scene()._replace(metrics=(Metric("a long name of a metric", (1.0, 2.0)),))

    (line,) = [line for line in show(scene, 40, 24) if line.startswith("a long")]

    assert "█" not in line


def test_processes_are_in_the_chosen_order() -> None:
    """By RAM at first."""
    by_ram, by_pid = ("\n".join(show(make_scene(0), sort=sort)) for sort in (0, 3))
    scene = make_scene(0)._replace(largest=(Process(5, "small", 1.0, 1.0, 1), *make_scene().largest))
    sorted_by_pid = "\n".join(show(scene, sort=3))

    assert by_ram.index(" 100 ") < by_ram.index(" 117 ")
    assert by_pid.index(" 100 ") < by_pid.index(" 117 ")
    assert sorted_by_pid.index("small") < sorted_by_pid.index("python")


def test_notes_are_whole_where_there_is_room() -> None:
    """Else a line each; what is bad is red."""
    long = "It was " + "very " * 30 + "slow."
    findings = tuple(Finding(f"rule-{n}", SERIOUS if n else NOTE, CERTAIN, long) for n in range(2))
    scene = make_scene(0)._replace(forecasts=(Forecast("done in 5 min"),), findings=findings)
    roomy, tight = show(scene, 80, 40), show(scene, 80, 16)

    assert " ".join(" ".join(roomy).split()).count(long) == 2
    assert any(line.startswith("Note It was") and line.endswith("…") for line in tight)
    assert "Forecast done in 5 min." in roomy
    spans = [span for line in build_frame(scene, Controls(), Look(80, 40)) for span in line]
    assert any(span.text == "Serious" and span.style == f"1;{RED}" for span in spans)


def test_hostile_sizes() -> None:
    """Long words are cut."""
    scene = make_scene()._replace(
        title="x" * 500, host="h", largest=(Process(1, "n" * 500, 1.0, 1e9, 10**15),)
    )

    wide = make_series("GPU 0", "9" * 100, CORES, 8.0, [1.0] * 60)

    assert max(map(count_cells, show(scene))) <= 80
    assert max(map(count_cells, show(scene._replace(series=(wide, wide))))) <= 80

"""The table of rules, what a user may change of it, and that no recording can break it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from gpu_tracker.analysis.findings.finding import CONFIDENCES, SEVERITIES
from gpu_tracker.analysis.findings.judge import Changes
from gpu_tracker.analysis.findings.table import RULES, find_rule, parse_changes
from gpu_tracker.core.errors import UsageError
from gpu_tracker.core.model import (
    Call,
    Event,
    FrameworkMemory,
    GpuSample,
    MetricRow,
    Parts,
    PeakMoment,
    PeakProcess,
    RamPeak,
    RecordingData,
    Spread,
    add_parts,
)
from gpu_tracker.core.moments import parse_moment
from gpu_tracker.recording.reader import load
from gpu_tracker.recording.sampled import read_columns
from gpu_tracker.reports.build import build
from gpu_tracker.reports.choices import Choices
from gpu_tracker.reports.contract import render
from made_runs import GB, Device, find, judge, lose, made_run, repeat
from recorded import make_full, run as make_run, write

NUMBERS = [str(number) for number in range(1, 37)]


def test_there_are_thirty_seven_rules_in_order() -> None:
    """1 to 36, and 15b."""
    assert [rule.number for rule in RULES] == [*NUMBERS[:15], "15b", *NUMBERS[15:]]
    assert len({rule.name for rule in RULES}) == 37


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_every_rule_says_everything_about_itself(rule: Any) -> None:
    """And its thresholds are numbers with a source."""
    words = (rule.looks_at, rule.guard, rule.sentence, rule.advice, rule.disproof)

    assert all(words)
    assert rule.severity in SEVERITIES
    assert all(threshold.source and threshold.value >= 0 for threshold in rule.thresholds)
    assert len({threshold.name for threshold in rule.thresholds}) == len(rule.thresholds)


# ---- Order.


def test_the_worst_comes_first_and_then_the_surest() -> None:
    """Whatever the order of the table."""
    run = made_run(Device(busy=5, throttled={"heat": 0.5}), cores=1, ram=63 * GB)

    findings = judge(run).findings

    assert [finding.rule for finding in findings][:2] == ["gpu-low", "ram-tight"]
    order = [
        (SEVERITIES.index(finding.severity), CONFIDENCES.index(finding.confidence)) for finding in findings
    ]
    assert order == sorted(order)


def test_why_it_died_comes_first() -> None:
    """Even if nothing is sure, and something else is serious."""
    run = made_run(Device(busy=5), cores=1, ram=10 * GB, exit_code=-9)
    first, second, *_ = judge(run).findings

    assert (first.rule, first.severity, first.confidence) == ("killed-why", "warning", "possible")
    assert (second.rule, second.severity) == ("gpu-low", "serious")


def test_what_is_certain_is_not_doubted() -> None:
    """What would show that it is wrong is told of the others only."""
    oom = made_run(Device(busy=5), exit_code=-9, events=[Event(9.0, "oom", "Out of memory.")], ram=60 * GB)
    certain, doubted, *_ = judge(oom).findings

    assert (certain.confidence, certain.disproof) == ("certain", "")
    assert doubted.disproof


def test_the_same_run_gets_the_same_findings() -> None:
    """Today and tomorrow."""
    run = made_run(Device(busy=5), cores=1, ram=63 * GB)
    one, other = judge(run), judge(run)

    assert one.findings
    assert (one.findings, one.unjudged) == (other.findings, other.unjudged)


def test_a_file_gets_the_same_findings(tmp_path: Path) -> None:
    """All that the rules look at is written."""
    region, calls = repeat(("epoch",), [2.9] * 10)
    run = made_run(Device(busy=5), regions=[region], calls=calls, metrics=[MetricRow(1.0, {"loss": 1.0})])

    kept = load(str(write(tmp_path / "x.jsonl", run)))

    assert build(kept, read_columns(kept)).findings == judge(run).findings


# ---- Changes.


def test_a_threshold_can_be_changed() -> None:
    """Of one rule, or of all."""
    low = made_run(Device(busy=5))
    strict = parse_changes({"gpu-low": {"note_percent": "4", "serious_percent": "3"}})
    patient = parse_changes({"all": {"least_intervals": "96"}})

    assert find(low, "gpu-low") is not None
    assert "gpu-low" not in [finding.rule for finding in judge(low, choices=Choices(strict)).findings]
    reasons = dict(judge(low, choices=Choices(patient)).unjudged)
    assert reasons["gpu-low"] == "95 intervals after the start; 96 are needed"


def test_the_start_can_be_longer() -> None:
    """Half of the run, say."""
    changes = parse_changes({"all": {"start_share": "0.8"}})

    reasons = dict(judge(made_run(Device(busy=5)), choices=Choices(changes)).unjudged)

    assert reasons["gpu-low"] == "20 intervals after the start; 30 are needed"


def test_a_rule_can_be_switched_off() -> None:
    """Then it says so."""
    changes = parse_changes({"gpu-low": {"off": "true"}, "tail": {"off": "false"}})
    report = judge(made_run(Device(busy=5)), choices=Choices(changes))

    assert changes == Changes({"gpu-low": {}, "tail": {}}, frozenset({"gpu-low"}))
    assert dict(report.unjudged)["gpu-low"] == "switched off"


@pytest.mark.parametrize(
    ("sections", "sentence"),
    [
        ({"gpu-lo": {}}, "No rule is called 'gpu-lo'. Did you mean 'gpu-low'?"),
        ({"xyzzy": {}}, "No rule is called 'xyzzy'. `gpu-tracker explain` lists the rules."),
        (
            {"tail": {"least_second": "1"}},
            "Rule 'tail' has no threshold 'least_second'. Did you mean 'least_seconds'?",
        ),
        (
            {"tail": {"xyzzy": "1"}},
            "Rule 'tail' has no threshold 'xyzzy'. It has time_share, least_seconds.",
        ),
        (
            {"tail": {"least_seconds": "long"}},
            "'long' is not a valid value of least_seconds in [tail]. Use a number from 0 on.",
        ),
        (
            {"tail": {"least_seconds": "inf"}},
            "'inf' is not a valid value of least_seconds in [tail]. Use a number from 0 on.",
        ),
        (
            {"tail": {"time_share": "5"}},
            "'5' is not a valid value of time_share in [tail]. Use a share from 0 to 1.",
        ),
        (
            {"gpu-low": {"note_percent": "101"}},
            "'101' is not a valid value of note_percent in [gpu-low]. Use a percentage from 0 to 100.",
        ),
        (
            {"all": {"start_share": "-1"}},
            "'-1' is not a valid value of start_share in [all]. Use a share from 0 to 1.",
        ),
        ({"tail": {"off": "perhaps"}}, "'perhaps' is not a valid value of off in [tail]. Use true or false."),
        (
            {"all": {"off": "true"}},
            "Rule 'all' has no threshold 'off'. It has least_intervals, start_share, unread_share.",
        ),
    ],
)
def test_a_wrong_change_is_refused_in_a_sentence(sections: dict[str, dict[str, str]], sentence: str) -> None:
    """With what was probably meant."""
    with pytest.raises(UsageError) as caught:
        parse_changes(sections)

    assert str(caught.value) == sentence


def test_a_rule_is_found_by_its_name() -> None:
    """As `explain` gets it."""
    assert find_rule("killed-why").number == "25"


# ---- Any recording.

WILD = st.one_of(
    st.sampled_from([0, 0.0, 1, -1, 1e-300, 1e308, -1e308, 2**63 - 1, -(2**63), float("nan"), float("inf")]),
    st.floats(allow_nan=True, allow_infinity=True),
)
WILD_COUNT = st.sampled_from([0, 1, 2, 31, 100, -1, 2**63 - 1])


@st.composite
def wild_recordings(draw: st.DrawFn) -> RecordingData:
    """A run in which any number is replaced by another."""
    n = draw(st.sampled_from([1, 2, 31, 40]))
    region, calls = repeat(("epoch",), [1.0] * 10)
    step, steps = repeat(("step",), [0.5] * 31)
    run = made_run(
        Device(
            gpu={"power_limit_watts": draw(WILD), "memory_bytes": draw(st.sampled_from([None, 0, -5, GB]))}
        ),
        Device(1, has_job=draw(st.booleans())),
        n=n,
        step=draw(st.sampled_from([1e-9, 0.1, 60.0])),
        exit_code=draw(st.sampled_from([None, 0, 1, 137, -9, -15, 2**40])),
        virtual=draw(WILD_COUNT),
        waiting=draw(WILD),
        given={
            "cores": draw(WILD),
            "machine_cores": draw(WILD_COUNT),
            "ram_bytes": draw(WILD_COUNT),
            "machine_ram_bytes": draw(WILD_COUNT),
            "address_space_bytes": draw(WILD_COUNT),
            "time_limit_seconds": draw(WILD),
            "ends_at_seconds": draw(WILD),
        },
        regions=[
            region._replace(
                wall_seconds=draw(WILD), path=draw(st.sampled_from([("epoch",), ("data_wait",), ()]))
            ),
            step._replace(squared_seconds=draw(WILD), first_seconds=draw(st.one_of(st.none(), WILD))),
        ],
        calls=[*calls, *steps, Call(("epoch",), 100, 2, draw(WILD), draw(st.one_of(st.none(), WILD)))],
        metrics=[
            MetricRow(draw(WILD), {"loss": draw(WILD)}, draw(st.one_of(st.none(), WILD))) for _ in range(3)
        ],
        moments=[
            PeakMoment("ram", draw(WILD), draw(WILD_COUNT), 3, (PeakProcess(1, "", draw(WILD_COUNT)),), ((),))
        ],
        events=[Event(0.0, draw(st.sampled_from(["oom", "note", "exception"])), "MemoryError")],
        frameworks=(
            FrameworkMemory(
                1, "JAX", "cuda:0", "GPU-0", 0.0, 1, draw(WILD_COUNT), "exact", flushes=draw(WILD_COUNT)
            ),
        ),
    )
    at = draw(st.integers(0, n - 1))
    value = draw(WILD)
    samples = list(run.samples)
    samples[at] = samples[at]._replace(
        at_seconds=draw(st.sampled_from([samples[at].at_seconds, value])),
        cpu_seconds=add_parts(value, draw(WILD)),
        system_cpu_seconds=draw(WILD),
        ram_bytes=Parts(*[Spread(draw(WILD), draw(WILD), draw(WILD))] * 3),
        gpus=(GpuSample("GPU-0", None, None, draw(WILD), draw(WILD), draw(WILD)),),
    )
    totals = run.totals._replace(
        at_seconds=draw(st.sampled_from([run.totals.at_seconds, value])),
        cpu_seconds=add_parts(draw(WILD), 0.0),
        peaks=run.totals.peaks._replace(ram=Parts(*[RamPeak(draw(WILD_COUNT))] * 3)),
    )
    end = None if run.end is None or draw(st.booleans()) else run.end._replace(totals=totals)
    return run._replace(samples=tuple(samples), totals=totals, end=end)


@given(wild_recordings(), st.booleans())
@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
def test_no_recording_breaks_a_rule(run: RecordingData, has_columns: bool) -> None:
    """Whatever its numbers are: rules find, stay silent, or say why they do not judge, and always the same."""
    from gpu_tracker.analysis.findings.facts import Reported, derive
    from gpu_tracker.analysis.findings.judge import judge as ask
    from gpu_tracker.analysis.frameworks import summarize_frameworks
    from gpu_tracker.analysis.regions import summarize_metrics, summarize_regions
    from gpu_tracker.analysis.summary import summarize
    from gpu_tracker.core.errors import WRONG_DATA

    try:
        reported = Reported(
            summarize(run), summarize_regions(run), summarize_metrics(run), summarize_frameworks(run)
        )
        columns = read_columns(run) if has_columns else None
    except WRONG_DATA:
        return  # such a recording is refused before anybody judges it

    judgements = [ask(derive(run, reported, columns), RULES, Changes()) for _ in range(2)]

    assert repr(judgements[0]) == repr(judgements[1])
    asked = {rule.name for rule in RULES}
    said = {finding.rule for finding in judgements[0].findings} | {name for name, _ in judgements[0].unjudged}
    assert said <= asked


def test_a_rule_that_meets_impossible_numbers_says_so() -> None:
    """The others go on."""
    began = parse_moment(made_run().header.started_at)
    assert began is not None
    run = made_run(exit_code=-9, given={"time_limit_seconds": float("inf"), "ends_at_seconds": began + 100})

    report = judge(run)

    assert dict(report.unjudged)["killed-why"] == "the recording has numbers that no run can have"
    assert [finding.rule for finding in report.findings] == ["cpu-percent"]


@pytest.mark.parametrize("n_samples", [0, 1, 3])
def test_hardly_any_samples_are_not_judged(n_samples: int) -> None:
    """Nor do they raise."""
    run = made_run(Device(), n=40)

    short = run._replace(samples=run.samples[:n_samples])

    assert {finding.severity for finding in judge(short).findings} <= {"note"}


def test_a_short_run_that_ends_well_imports_no_rules(tmp_path: Path) -> None:
    """Most jobs are short."""
    import subprocess

    path = write(tmp_path / "x.jsonl", make_run(totals=None))
    code = (
        "import sys\nfrom gpu_tracker.recording.reader import load\nfrom gpu_tracker.reports.build import build\n"
        f"run = load({str(path)!r})\nrun = run._replace(totals=run.totals._replace(readings=29))\n"
        "report = build(run)\nprint([name for name in sys.modules if 'findings' in name])"
    )

    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"


def test_findings_are_in_json(tmp_path: Path) -> None:
    """All of them, with their evidence by name."""
    report = json.loads(render(judge(made_run(Device(busy=5), ram=63 * GB)), "json"))

    assert report["findings"][0]["evidence"] == {"mean_percent": 5.0}
    assert report["unjudged"]["tail"] == "no region was marked, and no metric logged"
    assert build(load(str(make_full(tmp_path / "x.jsonl")))).findings == ()


def test_what_a_run_may_still_need_is_not_found_too_much() -> None:
    """Of a run that goes on, nobody knows whether it will need all it was given."""
    run = made_run(ram=5 * GB, cores=2, step=4)

    assert {"ram-oversized", "cores-oversized"} <= {one.rule for one in judge(run).findings}
    running = {one.rule for one in judge(run._replace(end=None, is_running=True)).findings}
    assert not running & {"ram-oversized", "cores-oversized"}


# ---- What was not measured.

_UNJUDGED = "not enough data: nothing was measured for 50 min 00 s of 1 h 00 min 00 s"


@pytest.mark.parametrize(
    ("rule", "fields", "devices"),
    [
        ("ram-oversized", {"ram": GB}, ()),
        ("one-core", {"cores": 1}, ()),
        ("cores-oversized", {"cores": 1}, ()),
        ("gpu-low", {}, (Device(busy=5),)),
        ("gpu-imbalance", {}, (Device(busy=80), Device(1, busy=10))),
        ("clocks-held-down", {}, (Device(throttled={"hardware": 0.4}),)),
        ("gpu-unused", {}, (Device(), Device(1, busy=0, has_job=False, job=0))),
    ],
)
def test_what_is_usual_is_not_known_if_much_of_a_run_was_not_measured(
    rule: str, fields: dict[str, Any], devices: tuple[Device, ...]
) -> None:
    """It is of the part that was; a tenth may be missing."""
    whole = made_run(*devices, step=6, **fields)

    assert find(whole, rule) is not None
    assert dict(judge(lose(whole, 3000.0)).unjudged)[rule] == _UNJUDGED
    assert find(lose(whole, 3000.0), rule) is None
    assert dict(judge(lose(whole, 60.0)).unjudged).get(rule) != _UNJUDGED


def test_a_user_may_say_how_much_must_have_been_measured() -> None:
    """As of every threshold."""
    lost = lose(made_run(cores=1), 60.0)
    changes = parse_changes({"all": {"unread_share": "0.5"}})

    findings = judge(lost, choices=Choices(changes=changes)).findings

    assert "one-core" in {finding.rule for finding in findings}
    assert find(lost, "one-core") is None

"""Values survive encoding and decoding."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given, strategies as st

from builders import MB, alone, found, gpu, gpu_totals, header, sample, totals
from gpu_tracker.core.model import (
    Busiest,
    End,
    Event,
    GpuProcessPeak,
    GpuSample,
    Header,
    Identity,
    MetricRow,
    Parts,
    Peaks,
    ProcessTotals,
    RamPeak,
    RegionTotals,
    Spread,
    Totals,
    add_parts,
)
from gpu_tracker.recording import schema
from recorded import FRAMEWORKS, GAPS, REGIONS

COUNTERS, GPU_PEAKS = gpu_totals()
JOB_BYTES = [1500 * MB, 500 * MB, 2000 * MB]
PEAKS = Peaks(
    ram=alone(RamPeak(5 * MB, 4 * MB, 1 * MB, "exact")),
    busiest=Parts(Busiest(), Busiest(), Busiest(1.5, 1.0)),
    gpu_utilization_sum_percent=40.0,
    limit_ram_bytes=7,
    gpus=(GPU_PEAKS,),
    gpu_processes=(GpuProcessPeak("GPU-0", 100, "job", 1500 * MB),),
)
SAMPLE = sample(
    12.5,
    readings=10,
    late_seconds=0.002,
    cpu_seconds=add_parts(11.25, 3.5),
    system_cpu_seconds=20.0,
    ram_bytes=Parts(Spread(1, 2, 3), Spread(0, 4, 8), Spread(5, 6, 7)),
    system_ram_bytes=1000 * MB,
    threads=9,
    processes=2,
    gpus=(
        GpuSample(
            "GPU-0", used_bytes=3000 * MB, job_bytes=2000 * MB, utilization_percent=50.0, power_watts=250.5
        ),
    ),
    gpu_counters=(COUNTERS,),
    peaks=PEAKS,
)


def through_json(data: object) -> object:
    """The same through JSON text."""
    return json.loads(json.dumps(data))


def test_a_header_round_trips() -> None:
    """With and without named GPUs, a name and labels."""
    known = Identity(name="a", labels=(("k", "v"), ("", "")), boot_id="b", job="7", rank=0, ranks=4)
    for value in (header(), header(gpu_uuids=("a", "b"), command=("x",), identity=known)):
        back: Header = schema.decode_header(through_json(schema.encode_header(value)))  # type: ignore[arg-type]
        assert back == value


def test_a_sample_round_trips_given_the_peaks_before_it() -> None:
    """Only the peaks that have grown are on the line."""
    before = PEAKS._replace(ram=alone(RamPeak(1, 1, 0)))
    line = schema.encode_sample(SAMPLE, before)

    assert list(line["peaks"]) == ["ram"]
    assert schema.decode_sample(through_json(line), before) == SAMPLE  # type: ignore[arg-type]


def test_activity_round_trips_and_is_left_out_where_it_is_not_measured() -> None:
    """In samples and totals; lines of other devices are as they were."""
    activity = ((31.5, 1.0), (2.0, 1.0), (0.0, 0.0), (4.0, 1.0))
    gpus = tuple(gpu._replace(sm_percent=31.5, bandwidth_percent=4.0) for gpu in SAMPLE.gpus)
    counters = tuple(gpu._replace(activity=activity) for gpu in SAMPLE.gpu_counters)
    active = SAMPLE._replace(gpus=gpus, gpu_counters=counters)
    line = schema.encode_sample(active, PEAKS)
    every = Totals(gpu_counters=counters)

    assert schema.decode_sample(through_json(line), PEAKS) == active  # type: ignore[arg-type]
    assert schema.decode_totals(through_json(schema.encode_totals(every))) == every  # type: ignore[arg-type]
    before = schema.encode_sample(SAMPLE, PEAKS)
    assert [len(gpu) for gpu in before["gpu_counters"]] == [7] * len(SAMPLE.gpu_counters)


def test_memory_of_which_nothing_was_read_is_null() -> None:
    """Of all parts: none of them was 0."""
    unread = SAMPLE._replace(ram_bytes=Parts(*[Spread(None, None, None)] * 3))
    line = schema.encode_sample(unread, PEAKS)

    assert line["ram"] == [None]
    assert schema.decode_sample(through_json(line), PEAKS) == unread  # type: ignore[arg-type]


def test_a_quiet_sample_is_short() -> None:
    """One process, no GPU, nothing new: a month must fit into 20 MB."""
    steady = Spread(10**9, 10**9, 10**9)
    sample = SAMPLE._replace(
        at_seconds=2_592_000.123456,
        ram_bytes=Parts(steady, Spread(0, 0, 0), steady),
        gpus=(),
        gpu_counters=(),
    )
    line = schema.encode_sample(sample, PEAKS)

    assert len(json.dumps(line, separators=(",", ":"))) < 160
    assert schema.decode_sample(line, PEAKS) == sample._replace(at_seconds=2592000.12)


def test_events_round_trip() -> None:
    """A device and a note."""
    for event in (found(gpu()), found(gpu(1, None)), Event(3.0, "note", "Something happened.")):
        assert schema.decode_event(through_json(schema.encode_event(event))) == event  # type: ignore[arg-type]


def test_the_end_round_trips() -> None:
    """With all totals, and what is known of devices."""
    end = End("exited", 3, totals(peaks=PEAKS, gpu_counters=(COUNTERS,)), 0.02, 9 * MB)

    for one in (end, end._replace(gpu_growth_bytes=0)):
        assert schema.decode_end(through_json(schema.encode_end(one))) == one  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("decode", "whole", "missing"),
    [
        (schema.decode_totals, schema.encode_totals(totals()), "at_seconds"),
        (schema.decode_totals, schema.encode_totals(totals()), "readings"),
        (schema.decode_region, schema.encode_known(REGIONS[0]), "wall_seconds"),
        (schema.decode_region, schema.encode_known(REGIONS[0]), "cpu_seconds"),
        (schema.decode_region, schema.encode_known(REGIONS[0]), "calls"),
        (schema.decode_gaps, schema.encode_gaps(GAPS), "lost_metrics"),
        (schema.decode_framework, schema.encode_known(FRAMEWORKS[0]), "failures"),
    ],
)
def test_a_field_that_every_writer_writes_is_needed(
    decode: Callable[[dict[str, Any]], Any], whole: dict[str, Any], missing: str
) -> None:
    """Without it nothing would be taken for 0."""
    assert decode(whole)
    with pytest.raises(KeyError):
        decode({name: value for name, value in whole.items() if name != missing})


def test_a_device_has_a_vendor() -> None:
    """There is no usual one."""
    line = schema.encode_event(found(gpu()))
    assert schema.decode_event(line) == found(gpu())
    del line["gpu"]["vendor"]
    with pytest.raises(KeyError):
        schema.decode_event(line)


@pytest.mark.parametrize("path", [[None], ["a", 1], [], [["a"]], "ab"])
def test_a_path_is_of_texts(path: list[Any]) -> None:
    """What is none is not made one."""
    assert schema.decode_path({"path": ["a", "b"]}) == ("a", "b")
    with pytest.raises((TypeError, ValueError)):
        schema.decode_path({"path": path})


@pytest.mark.parametrize("spread", [[None, 1.0, 2.0], [1, None, 2], [1, 2, None], [None, None, None]])
def test_of_an_interval_all_is_known_or_nothing(spread: list[Any]) -> None:
    """A mean without a maximum is none."""
    line = schema.encode_sample(sample(1.0), Peaks())
    with pytest.raises(ValueError, match="None"):
        schema.decode_sample({**line, "ram": [spread]}, Peaks())


def test_empty_totals_round_trip() -> None:
    """Before the first sample."""
    assert schema.decode_totals(schema.encode_totals(Totals())) == Totals()


def test_the_format_of_version_1_does_not_change_unnoticed() -> None:
    """A change of a line must raise VERSION, keep the old one readable, and change this test."""
    assert schema.VERSION == 1
    assert schema.encode_sample(SAMPLE, Peaks()) == {
        "at": 12.5,
        "readings": 10,
        "late": 0.002,
        "cpu": [11.25, 3.5, 20.0],
        "ram": [[1, 2, 3], [0, 4, 8], [5, 6, 7]],
        "system_ram": 1000 * MB,
        "threads": 9,
        "processes": 2,
        "gpus": [[3000 * MB, 2000 * MB, 50.0, None, 250.5]],
        "gpu_counters": [[500.0, 10.0, 400.0, 10.0, 2500.0, 10.0, [["heat", 1.0]]]],
        "peaks": {
            "ram": [
                [5 * MB, 4 * MB, 1 * MB, "exact"],
                [0, 0, 0, "sampled"],
                [5 * MB, 4 * MB, 1 * MB, "exact"],
            ],
            "limit_ram_bytes": 7,
            "busiest": [[0.0, 0.0], [0.0, 0.0], [1.5, 1.0]],
            "gpu_utilization_sum_percent": 40.0,
            "gpus": [["GPU-0", 3000 * MB, JOB_BYTES, "sampled", 90.0, 2500 * MB, 300.0, 70.0, True]],
            "gpu_processes": [["GPU-0", 100, "job", 1500 * MB, "sampled"]],
        },
    }


def test_regions_metrics_and_processes_round_trip() -> None:
    """Unknown values are left out; a nan is kept."""
    region = RegionTotals(
        pid=7,
        path=("epoch", "step"),
        calls=3,
        open_calls=1,
        wall_seconds=1.5,
        shortest_seconds=0.25,
        longest_seconds=1.0,
        squared_seconds=0.75,
        gpu_bytes=5 * MB,
    )
    process = ProcessTotals(7, 1, "python", 0.5, 9.5, 3.25, 100 * MB)
    rows = [
        MetricRow(1.0, {"loss": 0.5}, 1.0, 7),
        MetricRow(2.0, {"loss": float("inf"), "accuracy": 0.25}, None, 8),
        MetricRow(3.0, {}, float("inf"), 8),
    ]

    assert schema.decode_region(through_json(schema.encode_known(region))) == region  # type: ignore[arg-type]
    assert schema.decode_process(through_json(schema.encode_known(process))) == process  # type: ignore[arg-type]
    assert schema.decode_metrics(through_json(schema.encode_metrics(rows))) == rows  # type: ignore[arg-type]
    assert "energy_joules" not in schema.encode_known(region)


@pytest.mark.parametrize(
    "line",
    [
        {"at": [1.0, 2.0], "pid": [1, 1], "step": [None, None], "values": {"loss": [0.5]}},
        {"at": [1.0, 2.0], "pid": [1], "step": [None, None], "values": {"loss": [0.5, 0.6]}},
    ],
)
def test_columns_of_metrics_that_differ_in_length_are_damage(line: dict[str, Any]) -> None:
    """Alone, or among others."""
    with pytest.raises((IndexError, ValueError)):
        schema.join_metrics([line])


def test_a_metric_without_values_is_none() -> None:
    """A column that is all empty has no points."""
    line = {"at": [1.0], "pid": [1], "step": [None], "values": {"loss": [None], "acc": [0.5]}}

    assert [(name, list(at), list(values)) for name, at, values in schema.decode_metric_columns(line)] == [
        ("acc", [1.0], [0.5])
    ]


def test_a_text_is_no_list_of_counters() -> None:
    """It would be taken for its letters."""
    shown = schema.encode_totals(Totals(gpu_counters=(COUNTERS,)))
    with pytest.raises(TypeError, match="not a list"):
        schema.decode_totals({**shown, "gpu_counters": ["500"]})


def measure(rows: Sequence[MetricRow]) -> list[int]:
    """The bytes of each line."""
    return [len(to_text({"metrics": schema.encode_metrics(some)})) for some in schema.split_metrics(rows)]


def to_text(line: dict[str, Any]) -> str:
    """As it is written."""
    return json.dumps(line, separators=(",", ":"))


@given(
    st.lists(
        st.builds(
            MetricRow,
            st.floats(0, 1e6),
            st.dictionaries(st.integers(0, 50).map(str), st.floats(-9, 9), max_size=9),
        )
    )
)
def test_no_point_of_metrics_is_lost_or_moved_between_lines(rows: list[MetricRow]) -> None:
    """And a line has few gaps."""
    lines = list(schema.split_metrics(rows))

    assert [row for some in lines for row in some] == rows
    for some in lines:
        names = {name for row in some for name in row.values}
        assert len(names) * len(some) <= 4 * sum(len(row.values) for row in some)


def test_metrics_with_the_same_names_share_long_lines() -> None:
    """A thousand points in each."""
    rows = [MetricRow(float(at), {"loss": 1.0, "lr": 0.1}, at) for at in range(2500)]

    assert [len(some) for some in schema.split_metrics(rows)] == [1000, 1000, 500]


def test_metrics_take_as_much_as_there_are_numbers_whatever_their_names() -> None:
    """Twice as many points with names of their own take twice as much."""
    rows = [
        MetricRow(1.0, {f"layer{at:04}/{name}": 0.5 for name in ("mean", "std", "max")}) for at in range(2000)
    ]
    few, many = sum(measure(rows[:1000])), sum(measure(rows))

    assert many == pytest.approx(2 * few, rel=0.01)
    assert many / (3 * len(rows)) < 60


@pytest.mark.parametrize(
    "rows",
    [
        [MetricRow(1.0, {f"w{at}": -1.2345678901234567e-300 for at in range(3000)}) for _ in range(40)],
        [MetricRow(1.0, {"\U0001f600" * 50_000 + str(at): 1.0}) for at in range(9)],
    ],
)
def test_lines_of_metrics_are_far_shorter_than_what_is_read(rows: list[MetricRow]) -> None:
    """Many names, or long ones: a line is about a megabyte, or one point."""
    lines = measure(rows)

    assert len(lines) > 1
    assert max(lines) < 2**20 * 1.2


def test_only_lines_with_the_same_names_are_joined() -> None:
    """Others would get a gap for each point of each other."""
    lines = [
        schema.encode_metrics([MetricRow(float(at), {name: 1.0}, None, 7)]) for at, name in enumerate("aabc")
    ]

    assert [(data["at"], list(data["values"])) for data in schema.join_metrics(lines)] == [
        ([0.0, 1.0], ["a"]),
        ([2.0], ["b"]),
        ([3.0], ["c"]),
    ]

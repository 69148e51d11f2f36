"""nvidia-smi: recorded output of nine generations, and real processes that print it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count, pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from details import EVERY_DETAIL
from gpu_tracker.core.model import Gpu, GpuProcessReading, GpuReading, GpuReadings
from gpu_tracker.sources import NotAvailableError, command
from gpu_tracker.sources.gpu import foreign_pids, nvidia, nvidia_smi, smi_text
from gpu_tracker.sources.gpu.guard import DENIED, LOST, TROUBLE, UNSUPPORTED
from gpu_tracker.sources.gpu.smi_text import FIELD, HANDLE, NO_DEVICES, NOTHING, OTHER, SILENCE
from sources.gpu.smi_stage import NAME, STEP_SECONDS, Stage, app, device

RECORDED: dict[str, dict[str, Any]] = json.loads(
    Path(__file__).with_name("nvidia_smi_outputs.json").read_text()
)
GPU_0 = "GPU-00000000-1111-2222-3333-444444444444"
GPU_1 = "GPU-00000001-1111-2222-3333-444444444444"
MIB = 1024 * 1024
LOST_WORDS = "GPU is lost.  Reboot the system to recover this GPU"


def keys(query: str) -> list[str]:
    """The recorded outputs of one query."""
    return [key for key in RECORDED if key.endswith(f"|{query}")]


def split(key: str) -> tuple[int, str]:
    """The driver's generation, and the situation."""
    driver, situation, _ = key.split("|")
    return int(driver.split(".")[0]), situation


def parse_recorded(key: str) -> list[dict[str, str]]:
    """The rows of a recorded table; a situation without any must have the right complaint."""
    generation, situation = split(key)
    output = RECORDED[key]
    if (generation, situation) == (340, "noperm_dev1"):
        assert output == {"timeout": True}
        return []
    fields = output["args"][0].partition("=")[2].split(",")
    rows, complaint = smi_text.parse_table(output["stdout"], output["exit"], fields, 1)
    if situation in {"handle_lost_dev1", "mismatch", "unknown_init", "no_devices"}:
        assert rows == []
        check_complaint(complaint, generation, situation)
    else:
        assert complaint is None
        assert rows
    return rows


# ---- Every recorded output.


def test_the_recordings_are_all_there() -> None:
    """Ten builds, eleven situations, three queries."""
    assert len(RECORDED) == 330
    assert [len(keys(query)) for query in ("gpu", "apps", "L")] == [110, 110, 110]


@pytest.mark.parametrize("key", keys("gpu"))
def test_recorded_tables_of_devices(key: str) -> None:
    """Every cell is a figure or the right kind of refusal, every complaint is understood."""
    generation, situation = split(key)
    rows = parse_recorded(key)
    if not rows:
        return
    # Older drivers include their reserve in the used memory.
    reserve = 0 if generation >= 535 else 583
    used: list[int | None] = [(0 if situation == "proc_mem_na" else 2048) + reserve, reserve]
    utilization: list[float | None] = [55, 0]
    total: list[int | None] = [40960, 40960]
    refusals: list[list[tuple[str, str]]] = [[], []]
    if situation == "mig":
        utilization[0] = None
        refusals[0] = [("utilization_percent", UNSUPPORTED)]
    elif situation == "unknown_mem_dev1":
        used[1] = total[1] = None
        refusals[1] = [("used_bytes", TROUBLE)]
    elif situation == "util_lost_dev1":
        utilization[1] = None
        refusals[1] = [("utilization_percent", LOST)]
    elif situation == "util_unsupported_dev1":
        utilization[1] = None
        refusals[1] = [("utilization_percent", UNSUPPORTED)]
    n_devices = 1 if situation == "noperm_dev1" else 2
    assert len(rows) == n_devices
    for number, (row, uuid) in enumerate(zip(rows, [GPU_0, GPU_1], strict=False)):
        size, held = total[number], used[number]
        gpu = smi_text.parse_gpu(row)
        assert (gpu.ordinal, gpu.uuid, gpu.source) == (number, uuid, "nvidia_smi")
        assert gpu.memory_bytes == (None if size is None else size * MIB)
        reading, refused = smi_text.parse_reading(row, uuid)
        assert reading == GpuReading(
            uuid,
            None if held is None else held * MIB,
            utilization[number],
            utilization[number],
        )
        assert [(figure.name, smi_text.find_failure_kind(cell)) for figure, cell in refused] == refusals[
            number
        ]


def check_complaint(complaint: smi_text.Complaint | None, generation: int, situation: str) -> None:
    """The meaning of a recorded complaint, and the sentence for the user."""
    assert complaint is not None
    sentence = smi_text.explain_absence(complaint)
    assert sentence.startswith("No NVIDIA GPU was measured: ")
    assert sentence.endswith(".")
    if situation == "handle_lost_dev1":
        assert complaint == (HANDLE, "" if generation == 340 else "1", LOST_WORDS)
        assert "the GPU was lost; reboot" in sentence
    elif situation == "no_devices":
        assert complaint.kind == NO_DEVICES
        assert "found no device" in sentence
    elif situation == "mismatch":
        assert complaint == (OTHER, "", "Failed to initialize NVML: Driver/library version mismatch")
        assert "version mismatch" in sentence
        assert "reboot the machine" in sentence
    else:
        assert situation == "unknown_init"
        assert complaint == (OTHER, "", "Failed to initialize NVML: Unknown Error")
        assert "container" in sentence


@pytest.mark.parametrize("key", keys("apps"))
def test_recorded_tables_of_processes(key: str) -> None:
    """One process, with its memory if that is reported."""
    rows = parse_recorded(key)
    if not rows:
        return
    used = None if split(key)[1] == "proc_mem_na" else 2048 * MIB
    assert [smi_text.parse_app(row) for row in rows] == [GpuProcessReading(GPU_0, 4242, used)]
    if used is None:
        assert smi_text.find_failure_kind(rows[0]["used_memory"]) == UNSUPPORTED


@pytest.mark.parametrize("key", keys("L"))
def test_recorded_listings(key: str) -> None:
    """The devices up to where the listing stops, and the reason."""
    generation, situation = split(key)
    text = RECORDED[key]["stdout"]
    listed = [(0, NAME, GPU_0, None), (1, NAME, GPU_1, None)]
    if situation in {"mismatch", "unknown_init", "no_devices"}:
        listed = []
        check_complaint(smi_text.parse_complaint(text), generation, situation)
    elif situation in {"handle_lost_dev1", "noperm_dev1"}:
        listed = listed[:1]
        words = LOST_WORDS if situation == "handle_lost_dev1" else "Insufficient Permissions"
        assert smi_text.parse_complaint(text) == (HANDLE, "" if generation == 340 else "1", words)

    assert smi_text.parse_listing(text) == tuple(listed)


# ---- Parsers, beyond what is recorded.


def test_a_listing_of_something_else_is_empty() -> None:
    """Only GPUs and MIG instances count."""
    assert smi_text.parse_listing("Fan 0: Cooler (UUID: FAN-0)\n  MIG 1g.5gb Device 0: (UUID: MIG-0)") == ()


def test_instances_are_listed_under_their_device() -> None:
    """nvidia-smi lists them with `-L` only."""
    text = (
        f"GPU 0: {NAME} (UUID: {GPU_0})\n"
        "  MIG 1g.5gb      Device  0: (UUID: MIG-feb88891-0321-5fef-9c87-d4af3b54259e)\n"
        "  MIG 1c.3g.20gb  Device  1: (UUID: MIG-GPU-00000000-1111-2222-3333-444444444444/1/0)\n"
        f"GPU 1: {NAME} (UUID: {GPU_1})\n"
    )

    assert smi_text.parse_listing(text) == (
        (0, NAME, GPU_0, None),
        (0, f"{NAME} MIG 1g.5gb", "MIG-feb88891-0321-5fef-9c87-d4af3b54259e", GPU_0),
        (1, f"{NAME} MIG 1c.3g.20gb", f"MIG-{GPU_0}/1/0", GPU_0),
        (1, NAME, GPU_1, None),
    )


@pytest.mark.parametrize(
    ("cell", "number"),
    [
        ("0", 0),
        ("55 %", 55),
        ("40960 MiB", 40960),
        ("61.07", 61.07),
        ("61.07 W", 61.07),
        ("-3", -3),
        ("", None),
        ("-", None),
        (".5", None),
        ("5.", None),
        ("nan", None),
        ("inf", None),
        ("1e3", None),
        ("0x10", None),
        ("²", None),
        ("5 GiB", None),
        ("9" * 40, None),
        ("N/A", None),
        ("[N/A]", None),
    ],
)
def test_a_number_may_have_a_known_unit_only(cell: str, number: float | None) -> None:
    """Anything else is not a number."""
    assert smi_text.parse_number(cell) == number


@pytest.mark.parametrize(
    ("cell", "kind", "words"),
    [
        ("[N/A]", UNSUPPORTED, "GPU 3 does not report power draw."),
        ("N/A", UNSUPPORTED, "GPU 3 does not report power draw."),
        ("[Not Supported]", UNSUPPORTED, "GPU 3 does not report power draw."),
        ("[Insufficient Permissions]", DENIED, "Power draw of GPU 3 requires administrator rights."),
        ("[GPU is lost]", LOST, "GPU 3 was lost"),
        ("[GPU requires reset]", TROUBLE, "--gpu-reset"),
        ("[Unknown Error]", TROUBLE, "nvidia-smi said: [Unknown Error]."),
        ("ERR!", TROUBLE, "nvidia-smi said: ERR!."),
        ("", TROUBLE, "nvidia-smi said: nothing."),
    ],
)
def test_a_cell_without_a_number_gives_the_reason(cell: str, kind: str, words: str) -> None:
    """In the sentence for the user."""
    failure = smi_text.explain_cell("GPU 3", "power draw", cell)

    assert failure.kind == kind
    assert "GPU 3" in failure.text
    assert words in failure.text


@pytest.mark.parametrize(
    ("mask", "limits"),
    [
        ("0x0000000000000000", ()),
        ("0x0000000000000001", ()),
        ("0x0000000000000004", ("power",)),
        ("0x0000000000000008", ("hardware",)),
        ("0x0000000000000048", ("heat",)),
        ("0x0000000000000088", ("power",)),
        ("0x00000000000000AC", ("power", "heat")),
        ("[N/A]", None),
        ("0xzz", None),
        ("", None),
    ],
)
def test_causes_of_throttling(mask: str, limits: tuple[str, ...] | None) -> None:
    """Idleness is not throttling; the general hardware bit adds nothing to the specific ones."""
    assert smi_text.parse_limits(mask) == limits


@pytest.mark.parametrize(
    ("text", "device", "words"),
    [
        ("Unable to determine the device handle for GPU0000:65:00.0: Unknown Error\n", "0000:65:00.0", "Unknown Error"),
        ("Unable to determine the device handle for GPU 0000:0B:00.0: Unknown Error", "0000:0B:00.0", "Unknown Error"),
        ("Unable to determine the device handle for gpu 12: Insufficient Permissions", "12", "Insufficient Permissions"),
    ],
)  # fmt: skip
def test_a_device_that_cannot_be_opened_is_named(text: str, device: str, words: str) -> None:
    """By number or by bus, with or without a blank, depending on the version."""
    assert smi_text.parse_complaint(text) == (HANDLE, device, words)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure ...", "modprobe"),
        ("NVIDIA-SMI couldn't find libnvidia-ml.so library in your system. Please ...", "`utility` capability"),
        ("Failed to initialize NVML: Insufficient Permissions", "/dev/nvidia*"),
        ("Failed to initialize NVML: GPU access blocked by the operating system", "wsl --shutdown"),
        ("Segmentation fault\n", "nvidia-smi said: Segmentation fault; run it by hand"),
        ("", "nvidia-smi said: nothing; run it by hand"),
    ],
)  # fmt: skip
def test_an_absence_comes_with_its_fix(text: str, words: str) -> None:
    """Unknown words are quoted."""
    assert words in smi_text.explain_absence(smi_text.parse_complaint(text))


def test_a_field_may_be_dropped_or_have_an_older_name() -> None:
    """Except for those that identify a row."""
    fields = ("index", "uuid", "memory.reserved", "clocks_event_reasons.active")
    older = ("index", "uuid", "clocks_throttle_reasons.active")

    complaint = smi_text.parse_complaint('Field "memory.reserved" is not a valid field to query.\n\n')
    assert complaint[:2] == (FIELD, "memory.reserved")
    fewer = smi_text.drop_field(fields, complaint.subject)
    assert fewer == ("index", "uuid", "clocks_event_reasons.active")
    assert smi_text.drop_field(fewer, "clocks_event_reasons.active") == older
    assert smi_text.drop_field(older, "clocks_throttle_reasons.active") == ("index", "uuid")
    assert smi_text.drop_field(fields, "uuid") is None
    assert smi_text.drop_field(fields, "colour") is None


APP_ROW = {"gpu_uuid": GPU_0, "pid": "7", "used_memory": "5"}


@pytest.mark.parametrize(
    ("text", "status", "rows", "kind"),
    [
        ("", 0, [], None),
        (f"{GPU_0}, 7, 5\n", 0, [APP_ROW], None),
        # A warning about the infoROM follows a valid table.
        (f"{GPU_0}, 7, 5\nWARNING: infoROM is corrupted at gpu 0000:3B:00.0\n", 14, [APP_ROW], None),
        ("WARNING: infoROM is corrupted at gpu 0000:3B:00.0\n", 14, [], None),
        ("", 139, [], SILENCE),
        ("", None, [], SILENCE),
        (None, 137, [], SILENCE),
        (f"{GPU_0}, 7, 5\n", 139, [APP_ROW], SILENCE),
        (f"{GPU_0}, [N/A], [N/A]\n", 0, [], OTHER),
        ("No devices were found\n", 6, [], NO_DEVICES),
    ],
)
def test_only_success_makes_a_table_complete(
    text: str | None, status: int | None, rows: list[dict[str, str]], kind: str | None
) -> None:
    """An empty table means no processes; a crash, a hang or an unknown status does not."""
    table = smi_text.parse_table(text, status, smi_text.APP_FIELDS, 1)

    assert table.rows == rows
    assert (table.complaint and table.complaint.kind) == kind


def test_noise_on_standard_error_is_no_part_of_a_table() -> None:
    """It explains a failure at most."""
    noise = "dbus: warning\n"
    apps = smi_text.parse_table("", 0, smi_text.APP_FIELDS, 1, noise)
    crashed = smi_text.parse_table("", 127, smi_text.APP_FIELDS, 1, noise)
    devices = smi_text.parse_table("", 0, smi_text.DEVICE_FIELDS, 1, noise)

    assert apps == ([], None)
    assert [table.complaint for table in (crashed, devices)] == [(OTHER, "", "dbus: warning")] * 2


def test_a_table_of_devices_is_never_empty() -> None:
    """Without devices nvidia-smi prints a complaint."""
    table = smi_text.parse_table("", 0, smi_text.DEVICE_FIELDS, 1)

    assert table.complaint == (NOTHING, "", "nvidia-smi ended without output (exit status 0)")
    assert "without output" in smi_text.explain_absence(table.complaint)


CELLS = st.one_of(
    st.text(max_size=12),
    st.sampled_from(
        ["[N/A]", "0", "1", "55 %", "12 MiB", "[GPU is lost]", "0x4", GPU_0, "4242", "1.5", "-1", "²"]
    ),
)


@given(
    st.one_of(
        st.binary(max_size=300), st.lists(CELLS, max_size=24).map(lambda cells: ", ".join(cells).encode())
    )
)
def test_garbage_never_raises_nor_yields_a_wrong_type(garbage: bytes) -> None:
    """The result is a row with values of the right types, or no row."""
    text = garbage.decode("utf-8", "replace")
    for fields in (smi_text.DEVICE_FIELDS, ("index", "uuid", "memory.used")):
        for row in smi_text.parse_table(text, 0, fields, 1).rows:
            check_row(row)
    for row in smi_text.parse_table(text, 0, smi_text.APP_FIELDS, 1).rows:
        app = smi_text.parse_app(row)
        assert (type(app.uuid), type(app.pid)) == (str, int)
        assert app.used_bytes is None or (type(app.used_bytes) is int and app.used_bytes >= 0)
    for listed in smi_text.parse_listing(text):
        assert (type(listed.ordinal), type(listed.name), type(listed.uuid)) == (int, str, str)
    assert smi_text.parse_complaint(text).kind in {FIELD, HANDLE, NO_DEVICES, OTHER}
    assert smi_text.explain_absence(smi_text.parse_complaint(text)).endswith(".")
    assert type(smi_text.parse_limits(text)) in {tuple, type(None)}
    assert type(nvidia.parse_bus_id(text)) is str


def check_row(row: dict[str, str]) -> None:
    """The types of a device and of its reading."""
    gpu = smi_text.parse_gpu(row)
    assert type(gpu.ordinal) is int
    assert gpu.uuid.startswith(("GPU-", "pci-", "nvidia-"))
    assert gpu.memory_bytes is None or (type(gpu.memory_bytes) is int and gpu.memory_bytes >= 0)
    reading, refusals = smi_text.parse_reading(row, gpu.uuid)
    for bytes_ in (reading.used_bytes, reading.reserved_bytes):
        assert bytes_ is None or (type(bytes_) is int and bytes_ >= 0)
    for percent in (reading.utilization_percent, reading.memory_utilization_percent):
        assert percent is None or 0 <= percent <= 100
    for number in (reading.power_watts, reading.temperature_celsius, reading.sm_clock_mhz):
        assert number is None or type(number) is float
    for figure, cell in refusals:
        assert getattr(reading, figure.name) is None
        assert smi_text.find_failure_kind(cell) in {UNSUPPORTED, DENIED, LOST, TROUBLE}
    assert all(type(value) in {str, float} for value in smi_text.parse_details(row).values())


# ---- Real processes.


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    """A fake nvidia-smi, first on the PATH; none of its processes may be left."""
    stage = Stage(tmp_path)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    yield stage
    assert stage.find_running() == []


@contextmanager
def connected(stage: Stage, patience_seconds: float = 10) -> Iterator[nvidia_smi.NvidiaSmiSource]:
    """A source, closed afterwards."""
    source = stage.connect(patience_seconds)
    try:
        yield source
    finally:
        source.close()


def by_uuid(readings: GpuReadings) -> dict[str, GpuReading]:
    """The readings of the devices, by uuid."""
    return {reading.uuid: reading for reading in readings.devices}


def test_without_the_program_there_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Connecting raises it."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(nvidia, "_OTHER_FOLDERS", ())
    reason = nvidia_smi.why_absent()

    assert reason is not None
    assert reason.startswith("No NVIDIA GPU was measured: nvidia-smi, which comes with NVIDIA's driver,")
    with pytest.raises(NotAvailableError, match="is not on the PATH"):
        nvidia_smi.connect(time.monotonic)


def test_devices_figures_details_and_processes(stage: Stage) -> None:
    """Everything that a healthy machine reports, in base units."""
    stage.show(apps=[app(0, 4242), app(1, 77, "5")], in_pieces=True)
    assert nvidia_smi.why_absent() is None
    with connected(stage) as source:
        first = source.read(None)
        readings = stage.read(source)
        details = source.read_details(EVERY_DETAIL)
        mine = source.read(frozenset({77}))
        reasons = dict(source.reasons)

    assert source.gpus[0] == Gpu(
        *(0, GPU_0, NAME, 40960 * MIB, "nvidia", "nvidia_smi", "0000:01:00.0", "550.163.01"),
        power_limit_watts=400.0,
        top_sm_clock_mhz=1410.0,
    )
    assert [gpu.uuid for gpu in source.gpus] == [GPU_0, GPU_1]
    assert first[1:] == readings[1:]
    assert readings.devices[0] == GpuReading(
        GPU_0,
        used_bytes=2048 * MIB,
        utilization_percent=55,
        utilization_high_percent=55,
        reserved_bytes=583 * MIB,
        memory_utilization_percent=7,
        power_watts=61.07,
        temperature_celsius=31,
        sm_clock_mhz=1410,
        memory_clock_mhz=1215,
        limits=("power",),
        listed_bytes=2048 * MIB,
    )
    assert set(readings.processes) == {
        GpuProcessReading(GPU_0, 4242, 2048 * MIB),
        GpuProcessReading(GPU_1, 77, 5 * MIB),
    }
    assert mine.processes == (GpuProcessReading(GPU_1, 77, 5 * MIB),)
    assert details[GPU_1] == {
        "pstate": "P0",
        "power.limit": 400.0,
        "clocks.max.sm": 1410.0,
        "clocks_event_reasons.active": "0x0000000000000004",
    }
    assert reasons == {
        ("", "energy_joules"): "nvidia-smi does not report energy; the driver's library does.",
        ("", "utilization_of_processes"): (
            "nvidia-smi does not report utilization by process; the driver's library does."
        ),
    }
    assert stage.notes == []


def count_calls(stage: Stage) -> int:
    """How often nvidia-smi was started."""
    return len((stage.folder / "calls").read_text().splitlines())


def test_it_is_run_at_most_once_a_second(stage: Stage) -> None:
    """In between the latest reading is returned, with its time; connecting takes the first."""
    seconds = [100.0]
    source = nvidia_smi.connect(lambda: seconds[0])
    at_seconds = []
    for seconds[0] in (100.0, 100.4, 100.9, 109.0, 109.5, 109.9):
        at_seconds.append(source.read(None).at_seconds)

    assert at_seconds == [100, 100, 100, 109, 109, 109]
    assert count_calls(stage) == 4


def test_it_is_run_less_often_if_it_takes_much_cpu_time(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At most a twentieth of a core."""
    row = ", ".join(device(0).get(field, "") for field in smi_text.DEVICE_FIELDS)
    answers = [command.Answer(f"{row}\n", 0, 0.3), command.Answer("", 0, 0.1)]
    monkeypatch.setattr(nvidia_smi, "run", lambda *_: answers)
    seconds = [0.0]
    source = nvidia_smi.connect(lambda: seconds[0])
    at_seconds = set()
    for seconds[0] in range(25):
        at_seconds.add(source.read(None).at_seconds)

    assert at_seconds == {0, 8, 16, 24}


def test_figures_follow_the_machine(stage: Stage) -> None:
    """A new reading has the new figures."""
    with connected(stage) as source:
        stage.show([device(0, memory__used="4096", utilization__gpu="5")])
        reading = by_uuid(stage.read(source))[GPU_0]

    assert reading.used_bytes == 4096 * MIB
    assert (reading.utilization_percent, reading.utilization_high_percent) == (5, 5)


def test_processes_come_and_go(stage: Stage) -> None:
    """One of two disappears when it ends, and so does the last one, which leaves an empty table."""
    stage.show(apps=[app(0, 1), app(0, 2)])
    with connected(stage) as source:
        for pids in ([1, 2], [2], [], [3]):
            stage.show(apps=[app(0, pid) for pid in pids])
            readings = stage.read(source)

            assert [process.pid for process in readings.processes] == pids
            assert all(reading.lists_processes for reading in readings.devices)


@pytest.mark.parametrize("is_container", [False, True])
def test_a_process_of_the_host_with_the_same_id_is_not_the_job(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, is_container: bool
) -> None:
    """This process has not loaded the driver, so that in a container it is another that is listed."""
    monkeypatch.setattr(foreign_pids, "is_in_a_container", lambda: is_container)
    stage.show(apps=[app(0, os.getpid())])
    with connected(stage) as source:
        readings = source.read(frozenset({os.getpid()}))
        assert [process.pid for process in readings.processes] == [os.getpid()] * (not is_container)
        reasons = [source.reasons.get((one.uuid, "lists_processes"), "") for one in readings.devices]

    assert {one.lists_processes for one in readings.devices} == {not is_container}
    assert ["--pid=host" in reason for reason in reasons] == [is_container] * len(readings.devices)


def test_a_process_listed_twice_holds_the_larger(stage: Stage) -> None:
    """Each line has its total, as far as known."""
    stage.show(apps=[app(0, 1, used) for used in ("5", "9", "7", "[N/A]")])
    with connected(stage) as source:
        assert stage.read(source).processes == (GpuProcessReading(GPU_0, 1, 9 * MIB),)


@pytest.mark.parametrize("fault", ["stuck", "crashing", "crashing_late"])
def test_a_failed_table_of_processes_does_not_mean_none(stage: Stage, fault: str) -> None:
    """Whether it hangs, crashes without output, or after half the table; the devices go on."""
    stage.show(apps=[app(0, 1)])
    with connected(stage, patience_seconds=2) as source:
        assert source.read(None).processes
        stage.show(apps=[app(0, 1)], faults={fault: ["compute-apps"]})
        for _ in range(2):
            readings = stage.read(source)
            assert readings.processes == ()
            assert [reading.lists_processes for reading in readings.devices] == [False, False]
        words = source.reasons["", "lists_processes"]
        assert words.startswith("nvidia-smi does not list the processes on the NVIDIA GPUs: nvidia-smi ")
        stage.show(apps=[app(0, 1)])
        readings = stage.watch(source, lambda readings: readings.processes)
        assert readings.devices[0].lists_processes
        assert ("", "lists_processes") not in source.reasons

    assert stage.notes == [words]


def test_probing_names_only_devices_that_say_something(monkeypatch: pytest.MonkeyPatch) -> None:
    """Number 0 has nothing to say, 1 hangs, and from 2 on there is none."""
    answers = {0: smi_text.NOTHING, 1: SILENCE}

    class Program:
        def run(self, queries: Sequence[Any], _grace: object) -> tuple[dict[Any, smi_text.Table], float]:
            kinds = {query: answers.get(query.number, NO_DEVICES) for query in queries}
            return {
                query: smi_text.Table([], smi_text.Complaint(kind, "", "")) for query, kind in kinds.items()
            }, 0.0

    rows, complaints = nvidia_smi._probe_each(Program())  # type: ignore[arg-type]

    assert (rows, list(complaints)) == ([], [1])


@pytest.mark.parametrize("fault", ["stuck", "crashing"])
def test_a_program_that_fails_is_run_again(stage: Stage, fault: str) -> None:
    """Meanwhile there is a gap instead of stale figures, noted once per device."""
    with connected(stage, patience_seconds=2) as source:
        for _ in range(2):
            stage.show(faults={fault: ["gpu"]})
            assert stage.read(source).devices == ()
            assert stage.read(source).devices == ()
            stage.show()
            stage.watch(source, lambda readings: len(readings.devices) == 2)
        assert {device for device, _ in source.reasons} == {""}
        stage.ahead_seconds += 60
        before = count_calls(stage)
        assert len(stage.read(source).devices) == 2

    assert count_calls(stage) - before == 2  # all in one table again
    assert [note.partition(": ")[0] for note in stage.notes] == [
        "GPU 0 could not be read for a while",
        "GPU 1 could not be read for a while",
    ]


def test_a_driver_that_fails_for_a_while(stage: Stage) -> None:
    """It is queried at growing intervals, up to one minute; its error is noted once."""
    with connected(stage) as source:
        stage.show(complaint="Failed to initialize NVML: Unknown Error\n")
        began = stage.ahead_seconds
        at_seconds = []
        while stage.ahead_seconds < began + 800:
            before = count_calls(stage)
            stage.read(source)
            if count_calls(stage) > before:
                at_seconds.append(stage.ahead_seconds)
        stage.show()
        stage.watch(
            source, lambda readings: len(readings.devices) == 2 and readings.devices[0].lists_processes
        )

    pauses = [after - before for before, after in pairwise(at_seconds)]
    assert pauses == sorted(pauses)
    assert pauses[0] == STEP_SECONDS
    assert pauses[-1] == pytest.approx(60, abs=STEP_SECONDS)
    assert stage.notes == [
        "The NVIDIA GPUs could not be read for a while: Failed to initialize NVML: Unknown Error.",
        "nvidia-smi does not list the processes on the NVIDIA GPUs: Failed to initialize NVML: Unknown Error.",
    ]


def test_no_more_processes_can_be_started(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """At the start nothing is measured, later there is a gap."""
    with connected(stage) as source:
        with monkeypatch.context() as patch:
            patch.setattr(command, "_SHELL", "/no/such/shell")
            assert stage.read(source).devices == ()
            with pytest.raises(NotAvailableError, match="nvidia-smi cannot be started"):
                stage.connect()
        stage.watch(source, lambda readings: len(readings.devices) == 2)

    assert "nvidia-smi cannot be started (No such file or directory)" in stage.notes[0]


@pytest.mark.parametrize("names_the_lost", [True, False])
@pytest.mark.parametrize("rows_first", [True, False])
def test_a_device_lost_meanwhile_does_not_hide_the_others(
    stage: Stage, names_the_lost: bool, rows_first: bool
) -> None:
    """The oldest version does not even name it; the devices are then queried one by one."""
    gpus = [device(0), device(1), device(2)]
    stage.show(gpus, [app(0, 1), app(1, 2)])
    with connected(stage) as source:
        readings = source.read(None)
        assert (len(readings.devices), len(readings.processes)) == (3, 2)
        stage.show(
            [device(0, memory__used="1"), *gpus[1:]],
            [app(0, 1), app(1, 2)],
            lost=["1"],
            names_the_lost=names_the_lost,
            rows_first=rows_first,
        )
        assert stage.read(source).devices == ()
        readings = stage.read(source)
        assert readings.devices[0].used_bytes == MIB
        assert all(reading.lists_processes for reading in readings.devices)

        assert [reading.uuid for reading in readings.devices] == [GPU_0, device(2)["uuid"]]
        assert [process.pid for process in readings.processes] == [1]
        assert "GPU 1 was lost" in source.reasons[GPU_1, "used_bytes"]
        assert GPU_1 not in source.read_details(EVERY_DETAIL)
    assert [note for note in stage.notes if "lost" in note] == [
        "GPU 1 was lost; its figures are missing until it returns. Reboot the machine to restore it."
    ]


def test_a_device_that_cannot_be_opened_for_a_while_comes_back(stage: Stage) -> None:
    """It is queried on its own, at growing intervals."""
    with connected(stage) as source:
        stage.show(lost=["0"], why_lost="Unknown Error")
        stage.watch(source, lambda readings: [reading.uuid for reading in readings.devices] == [GPU_1])
        stage.show()
        stage.watch(source, lambda readings: len(readings.devices) == 2)

    assert stage.notes == ["GPU 0 could not be read for a while: Unknown Error."]


def test_a_device_that_begins_to_hang_does_not_hide_the_others(stage: Stage) -> None:
    """They go on while it is retried now and then."""
    stage.show(apps=[app(1, 9)])
    with connected(stage, patience_seconds=2) as source:
        stage.show(apps=[app(1, 9)], hanging=["0"])
        stage.watch(source, lambda readings: [reading.uuid for reading in readings.devices] == [GPU_1])
        readings = stage.read(source)

        assert readings.processes == (GpuProcessReading(GPU_1, 9, 2048 * MIB),)
        assert "did not answer within 2 seconds" in source.reasons[GPU_0, "device"]
    assert stage.notes == ["GPU 0 could not be read for a while: nvidia-smi did not answer within 2 seconds."]


@pytest.mark.parametrize("faults", [{}, {"rows_first": True}, {"rows_first": True, "status": 0}])
def test_a_device_lost_from_the_start_does_not_hide_the_others(stage: Stage, faults: dict[str, Any]) -> None:
    """Nor does one on which nvidia-smi hangs; both are noted, even if the rows of those before come first."""
    gpus = [device(number) for number in range(4)]
    stage.show(gpus, [app(3, 9)], lost=["1"], hanging=["2"], faults=faults)
    with connected(stage, patience_seconds=1.5) as source:
        readings = stage.read(source)
        assert len(readings.devices) == 2

    assert [gpu.ordinal for gpu in source.gpus] == [0, 3]
    assert readings.processes == (GpuProcessReading(device(3)["uuid"], 9, 2048 * MIB),)
    assert any(
        f"GPU 1 is not measured: nvidia-smi said: {' '.join(LOST_WORDS.split())}." in note
        for note in stage.notes
    )
    assert any("GPU 2 is not measured: nvidia-smi did not answer" in note for note in stage.notes)
    assert [(gpu.ordinal, gpu.uuid) for gpu in source.unopened] == [(1, "GPU 1"), (2, "GPU 2")]
    assert source.kinds["GPU 1", "device"] == "lost"


def test_more_devices_than_are_probed_at_once(stage: Stage) -> None:
    """All are probed until there are no more."""
    gpus = [device(number) for number in range(10)]
    stage.show([*gpus[:9], {**gpus[9], "index": "9"}], lost=["0"])
    with connected(stage) as source:
        assert [gpu.ordinal for gpu in source.gpus] == list(range(1, 10))


def test_devices_are_not_probed_without_end(stage: Stage) -> None:
    """A program may answer for every number that no such device can be opened."""
    gpus = [device(0, index=str(number)) for number in range(1000)]
    stage.show(gpus, lost=[str(number) for number in range(1000)])
    with pytest.raises(NotAvailableError):
        stage.connect()

    assert count_calls(stage) == 2 + 64


def test_a_device_that_is_denied_is_not_one_that_may_return(stage: Stage) -> None:
    """It is not the job's."""
    stage.show(lost=["0"], why_lost="Insufficient Permissions\n")
    with connected(stage) as source:
        assert (source.unopened, source.kinds["GPU 0", "device"]) == ((), "denied")


def test_connecting_fails_if_all_devices_hang(stage: Stage) -> None:
    """In bounded time, and no process is left behind."""
    stage.show(hanging=["0", "1"])
    started = time.monotonic()
    with pytest.raises(NotAvailableError, match=r"did not answer within 0\.5 seconds"):
        stage.connect(patience_seconds=0.5)

    assert time.monotonic() - started < 8


@pytest.mark.parametrize(
    "key",
    [key for key in keys("gpu") if split(key)[1] in {"mismatch", "unknown_init", "no_devices"}],
)
def test_recorded_complaints_when_connecting(stage: Stage, key: str) -> None:
    """Each becomes the sentence of its situation."""
    expected = {"mismatch": "reboot", "unknown_init": "must be restarted", "no_devices": "found no device"}
    stage.show(complaint=RECORDED[key]["stdout"])
    with pytest.raises(NotAvailableError, match=expected[split(key)[1]]):
        stage.connect()


@pytest.mark.parametrize(
    "key",
    [key for key in keys("gpu") if "normal" in key or "unsupported" in key or "unknown_mem" in key],
)
def test_recorded_tables_through_a_source(stage: Stage, key: str) -> None:
    """The cells of every generation, without the fields that it does not support."""
    generation, situation = split(key)
    output = RECORDED[key]
    fields = output["args"][0].partition("=")[2].split(",")
    rows, _ = smi_text.parse_table(output["stdout"].replace(" MiB", "").replace(" %", ""), 0, fields, 1)
    apps_row, _ = smi_text.parse_table(
        RECORDED[key.replace("|gpu", "|apps")]["stdout"], 0, ["pid", "used_memory", "gpu_uuid"], 1
    )
    unknown = [] if generation >= 535 else ["memory.reserved", "clocks_event_reasons.active"]
    stage.show([{**device(int(row["index"])), **row} for row in rows], apps_row, unknown_fields=unknown)
    with connected(stage) as source:
        readings = stage.read(source)
        reasons = source.reasons
        notes = " ".join(stage.notes)

        assert readings.devices[0].used_bytes == (2048 if generation >= 535 else 2631) * MIB
        assert readings.devices[0].reserved_bytes == (583 * MIB if generation >= 535 else None)
        assert readings.devices[0].utilization_percent == 55
        assert readings.processes == (GpuProcessReading(GPU_0, 4242, 2048 * MIB),)
        assert ("includes the NVIDIA driver's own reserve" in notes) == (generation < 535)
        assert (("", "reserved_bytes") in reasons) == (generation < 535)
        if situation == "util_unsupported_dev1":
            assert readings.devices[1].utilization_percent is None
            assert reasons[GPU_1, "utilization_percent"] == "GPU 1 does not report utilization."
            assert notes.count("GPU 1 does not report utilization.") == 1
        elif situation == "unknown_mem_dev1":
            assert source.gpus[1].memory_bytes is None
            assert readings.devices[1].used_bytes is None
            assert "[Unknown Error]" in reasons[GPU_1, "used_bytes"]
        else:
            assert readings.devices[1].used_bytes == (0 if generation >= 535 else 583) * MIB


def test_a_figure_that_comes_back_has_no_reason(stage: Stage) -> None:
    """The trouble was noted once, and is over."""
    stage.show([device(0, power__draw="[Unknown Error]")])
    with connected(stage) as source:
        assert stage.read(source).devices[0].power_watts is None
        assert (GPU_0, "power_watts") in source.reasons
        stage.show([device(0)])
        assert stage.read(source).devices[0].power_watts == 61.07
        assert (GPU_0, "power_watts") not in source.reasons

    assert len(stage.notes) == 1


def test_a_device_that_is_lost_in_one_cell_is_lost(stage: Stage) -> None:
    """The other cells of the row cannot be trusted."""
    with connected(stage) as source:
        stage.show([device(0), device(1, utilization__gpu="[GPU is lost]")], [app(1, 5)])
        for _ in range(2):
            readings = stage.read(source)
            assert [reading.uuid for reading in readings.devices] == [GPU_0]
            assert readings.processes == ()
    assert stage.notes == [
        "GPU 1 was lost; its figures are missing until it returns. Reboot the machine to restore it."
    ]


def test_processes_without_memory(stage: Stage) -> None:
    """Windows and WSL: the process is listed, its memory is unknown."""
    pid, dead_pid = os.getpid(), 2**22 + 1
    stage.show(apps=[app(0, dead_pid, "[N/A]")])
    with connected(stage) as source:
        assert stage.read(source).processes == (GpuProcessReading(GPU_0, dead_pid, None),)
        assert (GPU_0, "process_used_bytes") not in source.reasons  # the dead hold nothing
        stage.show(apps=[app(0, pid, "[N/A]")])
        readings = stage.read(source)

        assert readings.processes == (GpuProcessReading(GPU_0, pid, None),)
        assert readings.devices[0].lists_processes
        assert "WSL" in source.reasons[GPU_0, "process_used_bytes"]
        stage.show(apps=[app(0, pid)])
        assert stage.read(source).processes[0].used_bytes == 2048 * MIB
        assert (GPU_0, "process_used_bytes") not in source.reasons
    assert len(stage.notes) == 1


def test_instances_are_devices(stage: Stage) -> None:
    """Without figures, which nvidia-smi does not report, but with the reason."""
    instance = "MIG-feb88891-0321-5fef-9c87-d4af3b54259e"
    legacy = f"MIG-{GPU_0}/7/0"
    listing = f"GPU 0: {NAME} (UUID: {GPU_0})\n  MIG 1g.5gb     Device  0: (UUID: {instance})\n"
    gpu = device(0, mig__mode__current="Enabled", utilization__gpu="[N/A]")
    # The fake lists processes by device; names of instances are mapped by the source.
    stage.show([gpu, {**device(1), "uuid": instance}], [{**app(0, 8), "gpu_uuid": instance}], listing=listing)
    with connected(stage) as source:
        readings = stage.read(source)
        assert source._find_device(legacy) == GPU_0
        assert source._find_device("MIG-unknown") is None

    found = {gpu.uuid: gpu for gpu in source.gpus if gpu.parent_uuid}
    assert found[instance].name == f"{NAME} MIG 1g.5gb"
    assert found[instance].parent_uuid == GPU_0
    assert found[instance].memory_bytes is None
    assert readings.processes == (GpuProcessReading(instance, 8, 2048 * MIB),)
    assert "MIG" in source.reasons[instance, "used_bytes"]
    assert by_uuid(readings)[GPU_0].utilization_percent is None


def test_garbage_between_the_rows_is_ignored(stage: Stage) -> None:
    """Even if it is not valid text."""
    stage.show(apps=[app(0, 4242)], garbage=True, in_pieces=True)
    with connected(stage) as source:
        readings = stage.read(source)

    assert len(readings.devices) == 2
    assert readings.devices[0].used_bytes == 2048 * MIB
    assert readings.processes == (GpuProcessReading(GPU_0, 4242, 2048 * MIB),)


def test_a_warning_after_the_table_costs_nothing(stage: Stage) -> None:
    """A corrupt infoROM causes one every time, with its own exit status."""
    stage.show(warning="WARNING: infoROM is corrupted at gpu 0000:3B:00.0\n")
    with connected(stage) as source:
        assert [reading.lists_processes for reading in stage.read(source).devices] == [True, True]

    assert stage.notes == []


def test_a_device_that_disappears_from_the_table_is_noted(stage: Stage) -> None:
    """Lost access rights have no other symptom."""
    with connected(stage) as source:
        stage.show([device(0)])
        for _ in range(2):
            assert [reading.uuid for reading in stage.read(source).devices] == [GPU_0]

    assert len(stage.notes) == 1
    assert "no longer lists GPU 1" in stage.notes[0]


def test_processes_that_are_never_listed(stage: Stage) -> None:
    """A failed table of processes affects only that table."""
    stage.show(unknown_fields=["gpu_uuid"])
    with connected(stage) as source:
        readings = stage.read(source)

        assert len(readings.devices) == 2
        assert not readings.devices[0].lists_processes
        assert 'Field "gpu_uuid" is not a valid field' in source.reasons["", "lists_processes"]


def test_nothing_outlives_a_killed_client(stage: Stage) -> None:
    """Not even a program that hangs, which would not notice a closed pipe."""
    stage.show(stuck=["gpu", "compute-apps"])
    code = (
        "import time\nfrom gpu_tracker.sources.gpu import nvidia_smi\nnvidia_smi.connect(time.monotonic, 100)"
    )
    paths = os.pathsep.join(path for path in sys.path if path)
    environment = {**os.environ, "PYTHONPATH": paths}
    with subprocess.Popen([sys.executable, "-c", code], env=environment) as asker:
        # Two programs and their shells.
        n_running = stage.count_running(lambda number: number >= 4)
        asker.send_signal(signal.SIGKILL)

    assert n_running == 4
    assert stage.count_running(lambda number: number == 0) == 0


def test_closing_twice_and_reading_afterwards_is_harmless(stage: Stage) -> None:
    """A closed source returns no devices."""
    source = stage.connect()
    source.close()
    source.close()
    stage.ahead_seconds += 60

    assert source.read(None).devices == ()


# ---- Commands.


def test_commands_run_in_parallel_within_their_time() -> None:
    """A command that does not end in time is killed; one that fails has its output."""
    started = time.monotonic()
    answers = command.run([["sleep", "50"], ["echo", "hello"], ["/no/such/program"]], 1)

    assert time.monotonic() - started < 5
    assert [answer.text for answer in answers[:2]] == [None, "hello\n"]
    assert answers[2].text == ""
    assert "not found" in answers[2].errors
    assert [answer.status for answer in answers] == [137, 0, 127]


def test_however_much_a_command_complains_its_output_is_read() -> None:
    """It would wait if nobody read its complaints."""
    (answer,) = command.run([["sh", "-c", "yes complaint | head -c 1000000 >&2; echo hello"]], 40)

    assert answer.text == "hello\n"
    assert len(answer.errors) == 1_000_000


def test_a_command_that_hangs_delays_the_others_by_its_grace_period_only() -> None:
    """The patience may be longer than that."""
    answers = command.run([["sleep", "50"], ["echo", "hello"]], 40, 0.2)

    assert [answer.text for answer in answers] == [None, "hello\n"]


def test_a_jump_of_the_clock_kills_no_command(monkeypatch: pytest.MonkeyPatch) -> None:
    """Time during which we were stopped together with the commands does not count."""
    clock = count(0, 100)
    monkeypatch.setattr("gpu_tracker.sources.command.time.monotonic", lambda: next(clock))
    answers = command.run([["sh", "-c", "sleep 0.3; echo hello"]], 10)

    assert answers[0].text == "hello\n"


def test_the_cpu_time_of_a_command_is_measured() -> None:
    """Including that of its shell."""
    code = "import time\nwhile time.process_time() < 0.2: pass"
    answers = command.run([[sys.executable, "-c", code], ["true"]], 30)

    assert answers[0].cpu_seconds >= 0.2
    assert answers[1].cpu_seconds < 0.2


def test_a_command_does_not_ignore_a_closed_pipe() -> None:
    """Python ignores that signal, and its children would inherit this."""
    answers = command.run([["sh", "-c", "kill -PIPE $$; echo survived"]], 10)

    assert [(answer.text, answer.status) for answer in answers] == [("", 128 + signal.SIGPIPE)]


def test_endless_output_is_cut_off() -> None:
    """A program that never stops printing is killed."""
    answer = command.run([["yes"]], 40)[0]

    assert answer.text is not None
    assert answer.text[:4] == "y\ny\n"
    assert len(answer.text) < 1 << 23
    assert answer.status != 0


def test_a_row_that_is_cut_off_does_not_count() -> None:
    """12 of 1234 MiB would be made up; a row before it is whole, and prose needs no newline."""
    fields = ("gpu_uuid", "pid", "used_memory")
    cut = smi_text.parse_table("GPU-0, 7, 500 MiB\nGPU-0, 8, 12", 0, fields, 1.0)
    prose = smi_text.parse_table("No devices were found", 6, fields, 1.0)

    assert [row["pid"] for row in cut.rows] == ["7"]
    assert cut.complaint is not None
    assert cut.complaint.words == "nvidia-smi's output is cut off"
    assert prose.complaint is not None
    assert prose.complaint.words.startswith("No devices")


def test_a_mark_of_the_encoding_is_no_part_of_the_first_row() -> None:
    """Some wrappers write one."""
    table = smi_text.parse_table("\ufeffGPU-0, 7, 500 MiB\n", 0, ("gpu_uuid", "pid", "used_memory"), 1.0)

    assert [row["gpu_uuid"] for row in table.rows] == ["GPU-0"]


def test_output_that_is_not_text_is_not_quoted() -> None:
    """A sentence may hold a broken letter."""
    noise = bytes(range(128, 256)).decode(errors="replace") + "\x00\x01 abc"

    assert smi_text.shorten(noise) == "what it printed is not text"
    assert smi_text.shorten("Failed to initialize NVML\ufffd: Unknown Error.") == (
        "Failed to initialize NVML\ufffd: Unknown Error"
    )

"""DRM clients: recorded files, a fake machine, and garbage."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from gpu_tracker.sources.gpu import drm
from sources.gpu.fake_devices import MIB, NOBODY, FakeClock, FakeMachine, as_nobody, write_amdgpu, write_xe

AWAKE: frozenset[str] = frozenset()
BUS = "0000:03:00.0"


class Scene:
    """A fake machine, a clock, and the clients of amdgpu and xe on it."""

    def __init__(self, directory: Path) -> None:
        self.machine = FakeMachine(directory)
        self.clock = FakeClock()
        self.clients = drm.Clients(self.clock, str(self.machine.proc), frozenset({"amdgpu", "xe"}))

    def read(self, *pids: int, after: float = 1.0, asleep: frozenset[str] = AWAKE) -> list[drm.ClientReading]:
        """Read these processes, or all, after some seconds."""
        self.clock.seconds += after
        return list(self.clients.read(frozenset(pids) or None, asleep))


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    """An empty machine."""
    return Scene(tmp_path)


# ---- Parsers.


def test_an_amdgpu_client_is_read_whole() -> None:
    """Resident memory comes before requested memory, in any unit."""
    client = drm.parse_fdinfo(write_amdgpu(7, vram_kib=2048, gtt_kib=64, gfx=5_000, compute=9).encode())

    assert client is not None
    assert (client.driver, client.bus_id, client.client_id) == ("amdgpu", BUS, 7)
    assert client.memory_bytes == {"vram": 2 * MIB, "gtt": 64 * 1024, "cpu": 512 * 1024}
    assert client.busy_nanoseconds == {"gfx": 5_000, "compute": 9}


def test_an_xe_client_counts_cycles() -> None:
    """Both counters belong together, and a class may have several engines."""
    client = drm.parse_fdinfo(write_xe(5, ccs=10, rcs=20, total=1000).encode())

    assert client is not None
    assert client.cycles == {"rcs": (20, 1000), "ccs": (10, 1000)}
    assert client.capacities == {"ccs": 4}
    assert client.memory_bytes["vram0"] == 24 * MIB


@pytest.mark.parametrize(
    ("text", "expected"),
    [(b"12 KiB", 12288), (b" 3 MiB", 3 * MIB), (b"4096", 4096), (b"1 GiB", None), (b"", None), (b"-1", None)],
)
def test_sizes_have_units(text: bytes, expected: int | None) -> None:
    """No unit means bytes; an unknown one is invalid."""
    assert drm.parse_size(text) == expected


def test_a_file_that_is_not_a_client_is_none() -> None:
    """Nor is one without a driver."""
    assert drm.parse_fdinfo(b"pos:\t0\nflags:\t02\n") is None
    assert drm.parse_fdinfo(b"drm-driver:\t\ndrm-client-id: 1\n") is None


def test_invalid_lines_are_ignored() -> None:
    """The other lines count."""
    client = drm.parse_fdinfo(
        b"drm-driver: xe\ndrm-client-id: x\ndrm-engine-gfx: much\ndrm-resident-vram: 1 EiB\n"
        b"drm-total-vram: 5\ndrm-cycles-rcs: 5\ndrm-engine-capacity-rcs: 0\nnonsense\n"
    )

    assert client == drm.Client("xe", "", None, {}, {"rcs": 1}, {}, {"vram": 5})


@given(st.binary(max_size=300))
def test_no_bytes_break_the_parsers(garbage: bytes) -> None:
    """A value or None, never an exception."""
    drm.parse_size(garbage)
    drm.parse_fdinfo(garbage)
    for prefix in (
        b"",
        b"engine-",
        b"engine-capacity-",
        b"cycles-",
        b"total-",
        b"total-cycles-",
        b"client-id:",
    ):
        client = drm.parse_fdinfo(b"drm-driver: xe\ndrm-" + prefix + garbage)
        if client is not None:
            drm.add_device_bytes(client.memory_bytes, is_integrated=True)


@given(st.lists(st.tuples(st.integers(0, 2**64), st.integers(0, 2**64), st.integers(0, 16)), max_size=6))
def test_any_counters_give_percents(counters: list[tuple[int, int, int]]) -> None:
    """Between 0 and 100, wherever the counters go."""
    meter = drm._Meter()
    for second, (busy, total, capacity) in enumerate(counters):
        client = drm.Client("xe", BUS, 1, {"gfx": busy}, {"rcs": capacity}, {"rcs": (busy, total)}, {})
        meter.take(client, float(second))
        for percent in (meter.shares or {}).values():
            assert 0 <= percent <= 100


def test_memory_on_the_card_and_memory_in_ram() -> None:
    """Memory that the GPU cannot access, and regions that are not memory, never count."""
    regions = {"vram0": 1, "local0": 2, "gtt": 4, "system0": 8, "stolen-system0": 16, "cpu": 32, "gds": 64}

    assert drm.add_device_bytes(regions, is_integrated=False) == 3
    assert drm.add_device_bytes(regions, is_integrated=True) == 31


def test_the_kind_follows_from_the_engines() -> None:
    """Graphics if no engine was used yet."""
    assert drm.name_kind(["gfx"]) == "graphics"
    assert drm.name_kind(["ccs", "bcs"]) == "compute"
    assert drm.name_kind(["compute", "gfx"]) == "compute+graphics"
    assert drm.name_kind([]) == "graphics"
    assert drm.name_kind([], computes=True) == "compute"


def test_the_busiest_class_counts_and_not_the_sum_of_classes() -> None:
    """Clients add up within a class, to at most 100 %."""
    assert drm.find_busiest([{"gfx": 30.0, "dma": 50.0}, {"gfx": 40.0}]) == 70.0
    assert drm.find_busiest([{"gfx": 80.0}, {"gfx": 80.0}]) == 100.0
    assert drm.find_busiest([]) == 0.0


# ---- Counters.


def test_busy_time_between_two_readings_is_a_share(scene: Scene) -> None:
    """The first reading has nothing to compare with."""
    scene.machine.set_process(10, {5: write_amdgpu(gfx=7_000_000_000)})
    assert scene.read(10)[0].shares is None

    scene.machine.set_process(10, {5: write_amdgpu(gfx=7_500_000_000, compute=250_000_000)})
    (reading,) = scene.read(10, after=1.0)

    assert reading.shares == {"gfx": 50.0, "compute": 25.0}
    assert reading.engines == ("gfx", "compute")


def test_a_counter_that_goes_back_stands_still_until_it_catches_up(scene: Scene) -> None:
    """As the kernel's documentation requires."""
    percents = []
    for second in (1.0, 1.4, 0.2, 1.5, 2.0):
        scene.machine.set_process(10, {5: write_amdgpu(gfx=int(second * 1e9))})
        shares = scene.read(10)[0].shares
        percents.append(None if shares is None else round(shares["gfx"], 6))

    assert percents == [None, 40.0, 0.0, 10.0, 50.0]


def test_a_counter_that_is_reported_late_keeps_the_mean(scene: Scene) -> None:
    """No reading is above 100 %, and nothing is lost."""
    percents = []
    for second in (0, 0, 0, 3, 3, 3, 3):
        scene.machine.set_process(10, {5: write_amdgpu(gfx=second * 10**9)})
        shares = scene.read(10)[0].shares
        percents.append(None if shares is None else shares["gfx"] if shares else 0.0)

    assert percents == [None, 0.0, 0.0, 100.0, 100.0, 100.0, 0.0]


def test_a_counter_that_is_far_too_high_is_forgotten(scene: Scene) -> None:
    """One wrong value must not count as work from then on."""
    scene.machine.set_process(10, {5: write_amdgpu(gfx=0)})
    scene.read(10)
    scene.machine.set_process(10, {5: write_amdgpu(gfx=10**18)})
    percents = []
    for _ in range(30):
        shares = scene.read(10)[0].shares
        assert shares is not None
        percents.append(shares["gfx"])

    assert sum(percents) == 100.0 * 21


def test_cycles_are_measured_by_the_cards_own_clock(scene: Scene) -> None:
    """Regardless of the machine's clock, and over all engines of a class."""
    scene.machine.set_process(10, {5: write_xe(ccs=1000, rcs=0, total=10_000)})
    scene.read(10)
    scene.machine.set_process(10, {5: write_xe(ccs=3000, rcs=100, total=11_000)})

    assert scene.read(10, after=17.0)[0].shares == {"rcs": 10.0, "ccs": 50.0}

    scene.machine.set_process(10, {5: write_xe(ccs=3000, rcs=100, total=50)})
    assert scene.read(10)[0].shares == {"rcs": 0.0, "ccs": 0.0}


def test_cycles_are_preferred_to_time(scene: Scene) -> None:
    """If a driver reports both for an engine class, they must not be mixed."""
    for busy in (0, 10**9):
        text = write_xe(ccs=busy // 1000, total=busy // 500) + f"drm-engine-ccs:\t{busy} ns\n"
        scene.machine.set_process(10, {5: text})
        scene.read(10)

    assert scene.read(10, after=0.0)[0].shares == {"rcs": 0.0, "ccs": 12.5}


def test_a_reading_at_the_same_instant_returns_the_same(scene: Scene) -> None:
    """There is no rate without elapsed time."""
    for busy in (0, 10**9):
        scene.machine.set_process(10, {5: write_amdgpu(gfx=busy)})
        scene.read(10, after=2.0)

    assert scene.read(10, after=0.0)[0].shares == {"gfx": 50.0}


# ---- Clients and processes.


def test_a_duplicated_descriptor_is_one_client(scene: Scene) -> None:
    """Its client id shows it; another client on the same card has another one."""
    text = write_amdgpu(7)
    scene.machine.set_process(10, {5: text, 6: text, 9: write_amdgpu(8)})

    assert [reading.pid for reading in scene.read(10)] == [10, 10]
    # A copy is not read.
    assert len(scene.clients._processes[10].fds) == 2


def test_an_inherited_client_counts_once_and_for_the_parent(scene: Scene) -> None:
    """Or for a child, if only children are read or left."""
    for pid in (10, 11, 12):
        scene.machine.set_process(pid, {5: write_amdgpu(7)})

    assert [reading.pid for reading in scene.read()] == [10]
    assert [reading.pid for reading in scene.read(10, 11, 12)] == [10]
    assert [reading.pid for reading in scene.read(11, 12)] == [11]
    assert [reading.pid for reading in scene.read(10, 11, 12)] == [11]
    scene.machine.remove_process(11)
    assert [reading.pid for reading in scene.read(12)] == [12]


def test_the_same_client_id_on_another_card_is_another_client(scene: Scene) -> None:
    """Client ids are unique per card only."""
    other = "0000:83:00.0"
    scene.machine.set_process(10, {5: write_amdgpu(7), 6: write_amdgpu(7, bus_id=other)})

    assert {reading.bus_id for reading in scene.read(10)} == {BUS, other}


def test_a_client_without_an_id_counts_once_in_each_process(scene: Scene) -> None:
    """This is the lower bound."""
    text = write_amdgpu(7).replace("drm-client-id:\t7\n", "")
    for pid in (10, 11):
        scene.machine.set_process(pid, {5: text, 6: text})

    assert [reading.pid for reading in scene.read()] == [10, 11]


def test_clients_of_other_drivers_are_ignored(scene: Scene) -> None:
    """Each source reads its own."""
    scene.machine.set_process(10, {5: "drm-driver:\tnvidia-drm\n", 6: write_amdgpu()})

    assert len(scene.read(10)) == 1


def test_descriptors_are_found_when_opened_and_dropped_when_closed(scene: Scene) -> None:
    """Soon in a young process, within seconds in any."""
    scene.machine.set_process(10, {})
    assert scene.read(10) == []
    scene.machine.set_process(10, {5: write_amdgpu(7)})
    assert scene.read(10, after=0.1) == []
    assert len(scene.read(10, after=20.0)) == 1

    scene.machine.set_process(10, {8: write_amdgpu(7)})
    assert scene.read(10, after=0.01) == []
    assert len(scene.read(10, after=0.01)) == 1


@pytest.mark.skipif(
    not os.path.isdir("/dev/shm"), reason="only a file system in memory sizes directories as /proc does"
)
def test_a_card_that_is_opened_early_is_found_early() -> None:
    """A young process is rescanned at once if its number of descriptors has changed."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as directory:
        scene = Scene(Path(directory))
        scene.machine.set_process(10, {})
        assert scene.read(10) == []
        scene.machine.set_process(10, {5: write_amdgpu(7)})
        assert len(scene.read(10, after=0.3)) == 1


def test_known_descriptors_are_read_without_a_scan(scene: Scene) -> None:
    """Scanning is the expensive part."""
    scene.machine.set_process(10, {5: write_amdgpu(7)})
    scene.read(10)
    shutil.rmtree(scene.machine.proc / "10" / "fd")

    assert len(scene.read(10, after=0.2)) == 1


def test_a_descriptor_that_became_another_file_is_dropped(scene: Scene) -> None:
    """Descriptors are reused."""
    scene.machine.set_process(10, {5: write_amdgpu(7)})
    scene.read(10)
    (scene.machine.proc / "10/fdinfo/5").write_text("pos:\t0\n")

    assert scene.read(10, after=0.01) == []


def test_processes_may_end_at_any_time(scene: Scene) -> None:
    """Before, between and after readings."""
    scene.machine.set_process(10, {5: write_amdgpu(7)})
    assert len(scene.read(10, 11)) == 1
    scene.machine.remove_process(10)

    assert scene.read(10, 11) == []
    assert scene.read(10, 11, after=20.0) == []
    assert not scene.clients.denied


def test_clients_of_a_sleeping_card_are_not_read(scene: Scene) -> None:
    """That would wake it; they are read again when it wakes."""
    scene.machine.set_process(10, {5: write_amdgpu(7)})
    scene.read(10)
    info = scene.machine.proc / "10/fdinfo/5"
    opened_before = os.stat(info).st_atime_ns
    os.utime(info, ns=(opened_before - 10**15, os.stat(info).st_mtime_ns))
    untouched = os.stat(info).st_atime_ns

    for seconds in (0.1, 1.0, 20.0):
        assert scene.read(10, after=seconds, asleep=frozenset({BUS})) == []
    assert os.stat(info).st_atime_ns == untouched
    assert len(scene.read(10, after=0.1)) == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_processes_of_other_users_are_denied_only_if_they_were_requested() -> None:
    """Pid 1 is root's, and may or may not belong to the job."""
    clock = FakeClock()
    clients = drm.Clients(clock, "/proc", frozenset({"amdgpu"}))
    with as_nobody():
        assert clients.read(None, AWAKE) == ()
        assert clients.read(frozenset({os.getpid()}), AWAKE, of_all=True) == ()
        assert 1 not in clients.denied
        clock.seconds += 60
        assert clients.read(frozenset({1}), AWAKE) == ()

    assert clients.denied == {1}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_an_own_zombie_is_not_of_another_user() -> None:
    """It is unreadable, too, but needs no note."""
    with subprocess.Popen(["true"], user=NOBODY) as process:
        while b") Z " not in Path(f"/proc/{process.pid}/stat").read_bytes():
            time.sleep(0.01)
        clients = drm.Clients(FakeClock(), "/proc", frozenset({"amdgpu"}))
        with as_nobody():
            with pytest.raises(PermissionError):
                os.listdir(f"/proc/{process.pid}/fd")
            assert clients.read(frozenset({process.pid}), AWAKE) == ()

    assert not clients.denied

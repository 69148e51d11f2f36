"""What every test may use, and the proof that none leaves anything behind."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import sys
import sysconfig
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import settings

from covering import Covering
from marked import marked_processes, samplers_among
from nvml_simulator import Simulator, build
from patience import wait_until

TESTS = Path(__file__).parent
# Tests of values, and of files that hold them: they start nothing that could stay.
PURE_FOLDERS = {"accounts", "analysis", "core", "exports", "live", "recording", "reports"}
# As much as others may use while a test has the machine for itself, and how long all tests together wait for that.
CORES_OF_OTHERS = 0.3
QUIET_WITHIN_SECONDS = 180.0
# On every Unix.
OPEN_FILES = "/dev/fd"
# What shells and `nohup` have a job in the background ignore.
IGNORED_IN_THE_BACKGROUND = (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP)


# Inherited by everything the tests start, so that two test runs on one machine, and the workers of one, do not see each
# other's.
SESSION = "TEST_SESSION_OF_GPU_TRACKER"
os.environ[SESSION] = str(os.getpid())


# How long an example takes is the machine's affair. CI judges a change, so it has the same examples each time; new ones are found elsewhere.
IS_CI = bool(os.environ.get("CI"))
settings.register_profile("few", deadline=None, max_examples=50, derandomize=IS_CI)
settings.register_profile("soak", deadline=None, max_examples=1000, derandomize=IS_CI)


def running_samplers() -> set[int]:
    """Every sampler that these tests have started and that is not a zombie."""
    return {*samplers_among(marked_processes(SESSION, str(os.getpid())))}


@pytest.fixture(autouse=True)
def _nothing_is_left_behind(request: pytest.FixtureRequest) -> Iterator[None]:
    """No sampler outlives its test by more than two seconds, no descriptor stays open."""
    starts_processes = request.path.relative_to(TESTS).parts[0] not in PURE_FOLDERS
    samplers = running_samplers() if starts_processes else set()
    descriptors = len(os.listdir(OPEN_FILES))
    yield
    if starts_processes:
        wait_until(lambda: not running_samplers() - samplers, "no sampler is left", seconds=2)
    # Threads of others close theirs when they like.
    wait_until(lambda: len(os.listdir(OPEN_FILES)) <= descriptors, "all files are closed", seconds=2)


@pytest.fixture(autouse=True, scope="session")
def _children_heed_signals() -> None:
    """What a test starts does by default what signals ask for, also if the tests run in the background.

    A program that was told to ignore a signal has all its children ignore it. One that has a handler does not: so the
    tests go on ignoring it by a handler that does nothing.
    """
    for number in IGNORED_IN_THE_BACKGROUND:
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, lambda *_: None)


def pytest_addoption(parser: pytest.Parser) -> None:
    """How thorough to be."""
    parser.addoption("--coverage", action="store_true", help="measure which lines are run")
    parser.addoption(
        "--soak", action="store_true", help="repeat what can fail once in many times, many times"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Before anything of ours is imported, and not in a process that only hands out tests to workers."""
    settings.load_profile("soak" if config.getoption("--soak") else "few")
    if config.getoption("--coverage") and not config.getoption("numprocesses"):
        config.pluginmanager.register(Covering())


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Made-up examples are repetitions too."""
    for item in items:
        if getattr(getattr(item, "obj", None), "is_hypothesis_test", False):
            item.add_marker(pytest.mark.repeats(few=50, soak=1000))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """What fails while somebody tracks an ancestor of the tests (`gpu-tracker attach 1`) may fail for that: he gets their regions too."""
    report = yield
    if report.failed and (others := list_trackers_around()):
        report.sections.append(("tracked by others", "\n".join(others)))
    return report


def list_trackers_around() -> list[str]:
    """The mailboxes of those that were not started in this process."""
    from gpu_tracker.instrument.mailbox import find_writer
    from gpu_tracker.instrument.search import Search

    return [path for path in Search().find() if find_writer(os.path.basename(path))[0] != os.getpid()]


def read_cpu_of_others() -> float:
    """CPU seconds that anybody but this process and its children has used; samplers, which are nobody's children, use little."""
    user, nice, system, _idle, _iowait, irq, softirq, *_ = map(
        int, Path("/proc/stat").read_text().split()[1:9]
    )
    everybody = (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")
    ours = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return everybody - sum(usage.ru_utime + usage.ru_stime for usage in ours)


class Others:
    """How many cores others used in the stretch that was measured last."""

    cores = float("inf")
    seconds_left = QUIET_WITHIN_SECONDS

    @contextmanager
    def measured(self) -> Iterator[None]:
        """Measure what they use meanwhile."""
        used, began = read_cpu_of_others(), time.monotonic()
        try:
            yield
        finally:
            self.cores = (read_cpu_of_others() - used) / (time.monotonic() - began)

    def wait_for_quiet(self) -> None:
        """Wait until they leave the machine to the tests; fail if they never do."""
        while self.cores > CORES_OF_OTHERS:
            with self.measured():
                time.sleep(0.5)
            self.seconds_left -= 0.5
            if self.seconds_left < 0 and self.cores > CORES_OF_OTHERS:
                pytest.fail(f"needs a quiet machine, but others use {self.cores:.1f} cores")


OTHERS = Others()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """A test that needs the machine for itself waits for that; if it fails, it says whether it had it."""
    if item.get_closest_marker("serial") is None:
        return (yield)
    OTHERS.wait_for_quiet()
    try:
        with OTHERS.measured():
            return (yield)
    except AssertionError:
        item.add_report_section("call", "machine", f"Others used {OTHERS.cores:.2f} cores meanwhile.")
        raise


@pytest.fixture
def repeats(request: pytest.FixtureRequest) -> int:
    """How often the test does the same again: few times, or with --soak as many as its mark says."""
    (mark,) = request.node.iter_markers("repeats")
    is_soak: bool = request.config.getoption("--soak")
    few: int = mark.kwargs["few"]
    soak: int = mark.kwargs["soak"]
    return soak if is_soak else few


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The simulated NVIDIA driver, compiled once."""
    if shutil.which("cc") is None:
        pytest.skip("needs a C compiler")
    return build(tmp_path_factory.mktemp("nvml"))


@pytest.fixture
def hardware(library: Path, tmp_path: Path) -> Iterator[Simulator]:
    """Two devices of 40 GiB; folders and files that need other ones have their own."""
    with Simulator(library, tmp_path / "state") as simulator:
        for number in range(2):
            simulator.add_device(uuid=f"GPU-{number}", memory_reserved_bytes=0)
        yield simulator


@pytest.fixture(scope="session")
def command_line() -> str:
    """The installed `gpu-tracker`."""
    return str(Path(sysconfig.get_path("scripts")) / "gpu-tracker")


@pytest.fixture(scope="session")
def python() -> str:
    """The interpreter of the tests, for workloads."""
    return sys.executable


@pytest.fixture(scope="session")
def plotting() -> None:
    """There is matplotlib, and it has opened the fonts that it keeps open."""
    pytest.importorskip("matplotlib")
    from gpu_tracker.reports.plot import to_pdf
    from rich import report_rich  # not before coverage is measured

    to_pdf(report_rich(1, "训"))  # with the font for letters that no other has
    report = report_rich(2)
    for shown in (report, report._replace(columns=None)):
        shown.plot().canvas.draw()

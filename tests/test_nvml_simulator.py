"""The simulated NVIDIA driver, judged by the clients that people really use.

Clients run in processes of their own: a library loaded once would keep its state over all tests.
"""

from __future__ import annotations

import ctypes
import importlib.util
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from nvml_simulator import Code, Generation, Simulator, build, layout

MIB = 2**20
TESTS = Path(__file__).parent

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc and an ELF linker")

needs_gpustat = pytest.mark.skipif(
    importlib.util.find_spec("gpustat") is None, reason="gpustat is not installed"
)
needs_nvitop = pytest.mark.skipif(
    importlib.util.find_spec("nvitop") is None, reason="nvitop is not installed"
)

# Answers a list of [function, device or null, arguments…] through nvidia-ml-py.
PYNVML_CLIENT = """
import json, sys
import pynvml

def plain(value):
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if hasattr(value, "_fields_"):
        return {name: plain(getattr(value, name)) for name, _ in value._fields_}
    if isinstance(value, pynvml.c_uint):
        return value.value
    return vars(value) if hasattr(value, "__dict__") else value

def answer(function, device, *arguments):
    try:
        if device is not None:
            arguments = (pynvml.nvmlDeviceGetHandleByIndex(device), *arguments)
        return plain(getattr(pynvml, "nvml" + function)(*arguments))
    except pynvml.NVMLError as error:
        return {"error": error.value}

questions = json.loads(sys.argv[1])
start = answer("Init", None)
print(json.dumps([start] if start else [answer(*question) for question in questions]))
"""

NVITOP_CLIENT = """
import json
import nvitop

print(json.dumps([
    {
        "name": device.name(),
        "uuid": device.uuid(),
        "memory_used": device.memory_used(),
        "gpu_utilization": device.gpu_utilization(),
        "mig": [[part.uuid(), part.memory_used(), list(part.processes())]
                for part in device.mig_devices()],
        "processes": {
            pid: [process.gpu_memory(), process.gpu_sm_utilization()]
            for pid, process in device.processes().items()
        },
    }
    for device in nvitop.Device.all()
], default=str))
"""

# Opens the library without any binding, for questions about the ABI itself.
RAW_CLIENT = """
import ctypes, json, os
nvml = ctypes.CDLL("libnvidia-ml.so.1")

def first_handle():
    handle = ctypes.c_void_p()
    assert nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(handle)) == 0
    return handle
"""

# Allocates on the GPU for itself, prints that, and ends with its input.
WORKLOAD = """
import os, sys
from nvml_simulator import Simulator

with Simulator.open() as simulator:
    simulator.set_process(0, os.getpid(), int(sys.argv[1]))
    print("allocated", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def simulator(library: Path, tmp_path: Path) -> Iterator[Simulator]:
    """Provide a driver that has no devices yet."""
    with Simulator(library, tmp_path / "state") as simulator:
        yield simulator


@pytest.fixture
def job() -> Iterator[subprocess.Popen[bytes]]:
    """Provide a process that lives until the test ends it."""
    with subprocess.Popen(["sleep", "600"]) as process:
        yield process
        process.kill()


def run(simulator: Simulator, *command: str, **more: str) -> str:
    """Run a Python program as a client of the simulated driver and return what it prints."""
    environment = {**os.environ, "PYTHONPATH": str(TESTS), **simulator.environment(), **more}
    arguments = [sys.executable, *command]
    done = subprocess.run(arguments, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def ask(simulator: Simulator, *questions: list[Any], **more: str) -> Any:
    """Put questions to nvidia-ml-py; an error is answered by its code."""
    return json.loads(run(simulator, "-c", PYNVML_CLIENT, json.dumps(questions), **more))


def ask_raw(simulator: Simulator, script: str) -> Any:
    """Run a script on the bare library; it leaves its answer in `answer`."""
    return json.loads(run(simulator, "-c", f"{RAW_CLIENT}\n{script}\nprint(json.dumps(answer))"))


def ask_gpustat(simulator: Simulator) -> Any:
    """Return the devices as `gpustat --json` reports them."""
    return json.loads(run(simulator, "-m", "gpustat", "--json"))["gpus"]


def ask_nvitop(simulator: Simulator) -> Any:
    """Return the devices as nvitop's Python interface reports them."""
    return json.loads(run(simulator, "-c", NVITOP_CLIENT))


def error(code: Code) -> dict[str, int]:
    """Return what `ask` answers for an error."""
    return {"error": int(code)}


def become_zombie(process: subprocess.Popen[bytes]) -> None:
    """Kill a child without reaping it, and return when it is a zombie."""
    process.send_signal(signal.SIGKILL)
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)


# -- the two definitions of the state file ---------------------------------------------------------


def test_c_and_python_agree_on_every_field(tmp_path: Path) -> None:
    """Every field of the state has the same offset and size in C as in Python."""
    lines, expected = [], []
    for structure in vars(layout).values():
        if not (isinstance(structure, type) and issubclass(structure, ctypes.Structure)):
            continue
        c_name = "struct " + re.sub(r"(?<!^)(?=[A-Z])", "_", structure.__name__).lower()
        for field in (entry[0] for entry in structure._fields_):
            described = getattr(structure, field)
            lines.append(
                f'printf("{c_name}.{field} %zu %zu\\n", offsetof({c_name}, {field}),'
                f" sizeof((({c_name} *)0)->{field}));"
            )
            expected.append(f"{c_name}.{field} {described.offset} {described.size}")
    source = tmp_path / "layout.c"
    main = "int main(void) {\n" + "\n".join(lines) + "\n}\n"
    source.write_text(f'#include <stddef.h>\n#include <stdio.h>\n#include "state.h"\n{main}')
    headers = TESTS / "nvml_simulator"
    subprocess.run(["cc", f"-I{headers}", "-o", tmp_path / "layout", source], check=True)
    printed = subprocess.run([tmp_path / "layout"], capture_output=True, text=True, check=True)
    assert printed.stdout.splitlines() == expected


def test_a_state_of_another_layout_is_refused_by_both_sides(simulator: Simulator) -> None:
    """A file of another layout version stops the library as well as the Python side."""
    content = bytearray(simulator.path.read_bytes())
    content[0] += 1
    other = simulator.path.with_name("other")
    other.write_bytes(content)
    assert ask(simulator, NVML_SIMULATOR_STATE=str(other)) == [error(Code.VERSION_MISMATCH)]
    with pytest.raises(ValueError, match="layout"):
        Simulator.open(other)
    other.write_bytes(content[:100])
    assert ask(simulator, NVML_SIMULATOR_STATE=str(other)) == [error(Code.VERSION_MISMATCH)]
    with pytest.raises(ValueError, match="layout"):
        Simulator.open(other)


def test_a_closed_simulator_leaves_no_driver(library: Path) -> None:
    """The creator removes the state file, and clients then find no driver."""
    with Simulator(library) as simulator:
        environment = simulator.environment()
    assert not simulator.path.exists()
    assert ask(simulator, **environment) == [error(Code.DRIVER_NOT_LOADED)]
    assert ask(simulator, NVML_SIMULATOR_STATE="") == [error(Code.DRIVER_NOT_LOADED)]


# -- what real clients see -------------------------------------------------------------------------


def test_nvidia_ml_py_sees_the_devices(simulator: Simulator) -> None:
    """Names, identities and fixed values arrive through nvidia-ml-py as they were set."""
    simulator.add_device(name="First", uuid="GPU-first", pci_bus_id="00000000:3B:00.0")
    second = simulator.add_device(temperature_celsius=71, power_watts=123.4, power_limit_watts=250)
    simulator.set_clocks_mhz(second, sm=900, memory=800)
    simulator.set_throttle_reasons(second, 0x40)
    simulator.set_utilization(second, gpu_percent=63, memory_percent=21)
    simulator.set_video_utilization(second, encoder_percent=5, decoder_percent=6)
    answers = ask(
        simulator,
        ["SystemGetDriverVersion", None],
        ["DeviceGetCount", None],
        ["DeviceGetName", 0],
        ["DeviceGetUUID", 0],
        ["DeviceGetPciInfo", 0],
        ["DeviceGetTemperature", 1, 0],
        ["DeviceGetPowerUsage", 1],
        ["DeviceGetEnforcedPowerLimit", 1],
        ["DeviceGetClockInfo", 1, 1],
        ["DeviceGetMaxClockInfo", 1, 1],
        ["DeviceGetCurrentClocksThrottleReasons", 1],
        ["DeviceGetCurrentClocksEventReasons", 1],
        ["DeviceGetUtilizationRates", 1],
        ["DeviceGetEncoderUtilization", 1],
        ["DeviceGetDecoderUtilization", 1],
        ["DeviceGetIndex", 1],
    )
    assert answers[:4] == ["550.54.15", 2, "First", "GPU-first"]
    assert (answers[4]["bus"], answers[4]["busId"]) == (0x3B, "00000000:3B:00.0")
    assert answers[5:12] == [71, 123400, 250000, 900, 1410, 0x40, 0x40]
    assert answers[12] == {"gpu": 63, "memory": 21}
    assert [answers[13][0], answers[14][0], answers[15]] == [5, 6, 1]


def test_devices_are_found_by_uuid_and_bus_id(simulator: Simulator) -> None:
    """Handles by UUID and by PCI bus id (with a short domain too) lead to the same device."""
    simulator.add_device()
    simulator.add_device(uuid="GPU-wanted", pci_bus_id="00000000:AF:00.0")
    script = """
nvml.nvmlInit_v2()
def index(find, text):
    handle, number = ctypes.c_void_p(), ctypes.c_uint(99)
    code = find(text, ctypes.byref(handle))
    return code or (nvml.nvmlDeviceGetIndex(handle, ctypes.byref(number)), number.value)
answer = [index(nvml.nvmlDeviceGetHandleByUUID, b"GPU-wanted"),
          index(nvml.nvmlDeviceGetHandleByUUID, b"GPU-other"),
          index(nvml.nvmlDeviceGetHandleByPciBusId_v2, b"0000:af:00.0")]
"""
    assert ask_raw(simulator, script) == [[0, 1], Code.NOT_FOUND, [0, 1]]


def test_used_memory_is_the_sum_of_what_lives_there(
    simulator: Simulator, job: subprocess.Popen[bytes]
) -> None:
    """Device memory adds processes and extra; only the old call counts reserved memory as used."""
    simulator.add_device(
        memory_total_bytes=1000 * MIB, memory_reserved_bytes=100 * MIB, extra_used_bytes=50 * MIB
    )
    simulator.set_process(0, job.pid, 300 * MIB)
    simulator.set_process(0, os.getpid(), 200 * MIB)
    old, new = ask(simulator, ["DeviceGetMemoryInfo", 0], ["DeviceGetMemoryInfo", 0, 0x02000028])
    assert old == {"total": 1000 * MIB, "free": 350 * MIB, "used": 650 * MIB}
    assert (new["reserved"], new["free"], new["used"]) == (100 * MIB, 350 * MIB, 550 * MIB)
    simulator.remove_process(0, job.pid)
    simulator.set_extra_used_bytes(0, 0)
    (new,) = ask(simulator, ["DeviceGetMemoryInfo", 0, 0x02000028])
    assert new["used"] == 200 * MIB


def test_a_process_in_two_lists_counts_once(simulator: Simulator, job: subprocess.Popen[bytes]) -> None:
    """Both lists name the process, and the device counts the larger number once."""
    simulator.add_device()
    simulator.set_process(0, job.pid, 300 * MIB, sm_percent=30)
    simulator.set_process(0, job.pid, 200 * MIB, "graphics", sm_percent=30)
    simulator.set_process(0, os.getpid(), 100 * MIB, "mps", sm_percent=80)
    compute, graphics, mps, memory, utilization = ask(
        simulator,
        ["DeviceGetComputeRunningProcesses", 0],
        ["DeviceGetGraphicsRunningProcesses", 0],
        ["DeviceGetMPSComputeRunningProcesses", 0],
        ["DeviceGetMemoryInfo", 0, 0x02000028],
        ["DeviceGetUtilizationRates", 0],
    )
    assert [(entry["pid"], entry["usedGpuMemory"]) for entry in compute] == [(job.pid, 300 * MIB)]
    assert [(entry["pid"], entry["usedGpuMemory"]) for entry in graphics] == [(job.pid, 200 * MIB)]
    assert [entry["pid"] for entry in mps] == [os.getpid()]
    assert memory["used"] == 400 * MIB
    assert utilization["gpu"] == 100


@needs_gpustat
def test_gpustat_agrees_with_the_state(simulator: Simulator, job: subprocess.Popen[bytes]) -> None:
    """Memory, utilization, power and processes appear in `gpustat --json`."""
    simulator.add_device(extra_used_bytes=100 * MIB, power_watts=77)
    simulator.add_device()
    simulator.set_process(0, job.pid, 2048 * MIB, sm_percent=40)
    simulator.set_process(1, job.pid, None)
    first, second = ask_gpustat(simulator)
    assert (first["memory.used"], first["utilization.gpu"], first["power.draw"]) == (2148, 40, 77)
    assert [(p["pid"], p["gpu_memory_usage"]) for p in first["processes"]] == [(job.pid, 2048)]
    assert [(p["pid"], p["gpu_memory_usage"]) for p in second["processes"]] == [(job.pid, None)]
    assert second["memory.used"] == 0


@needs_nvitop
def test_nvitop_agrees_with_the_state(simulator: Simulator, job: subprocess.Popen[bytes]) -> None:
    """Memory, utilization and processes with their share of the GPU appear in nvitop."""
    simulator.add_device(extra_used_bytes=100 * MIB)
    simulator.add_device(name="Idle")
    simulator.set_process(0, job.pid, 2048 * MIB, sm_percent=40)
    busy, idle = ask_nvitop(simulator)
    assert (busy["memory_used"], busy["gpu_utilization"]) == (2148 * MIB, 40)
    assert busy["processes"] == {str(job.pid): [2048 * MIB, 40]}
    assert (idle["name"], idle["processes"]) == ("Idle", {})


@needs_nvitop
def test_the_nvitop_program_draws_the_process(simulator: Simulator, job: subprocess.Popen[bytes]) -> None:
    """`nvitop -1` prints a row for the process without any complaint."""
    simulator.add_device()
    simulator.set_process(0, job.pid, 2048 * MIB)
    printed = run(simulator, "-m", "nvitop", "-1", "--ascii")
    assert re.search(rf"\b{job.pid}\b.* 2048MiB", printed)
    assert "ERROR" not in printed


def test_a_full_machine_is_seen_whole(simulator: Simulator) -> None:
    """Sixteen GPUs with two hundred processes between them all come through."""
    for _ in range(16):
        simulator.add_device()
    for number in range(200):
        simulator.set_process(number % 16, 5_000_000 + number, MIB, foreign=True)
    lists = ask(simulator, *(["DeviceGetComputeRunningProcesses", index] for index in range(16)))
    assert sum(map(len, lists)) == 200
    with pytest.raises(ValueError, match="at most 16"):
        simulator.add_device()


# -- the life of processes -------------------------------------------------------------------------


def test_a_dead_process_vanishes(simulator: Simulator, job: subprocess.Popen[bytes]) -> None:
    """A process that has exited holds no memory and is in no list."""
    simulator.add_device()
    simulator.set_process(0, job.pid, 300 * MIB, sm_percent=50)
    job.kill()
    job.wait()
    assert ask(simulator, ["DeviceGetComputeRunningProcesses", 0], ["DeviceGetUtilizationRates", 0]) == [
        [],
        {"gpu": 0, "memory": 0},
    ]


def test_a_zombie_vanishes(simulator: Simulator, job: subprocess.Popen[bytes]) -> None:
    """A process that has exited but was not reaped has lost its GPU memory too."""
    simulator.add_device()
    simulator.set_process(0, job.pid, 300 * MIB)
    become_zombie(job)
    processes, memory = ask(
        simulator,
        ["DeviceGetComputeRunningProcesses", 0],
        ["DeviceGetMemoryInfo", 0, 0x02000028],
    )
    assert (processes, memory["used"]) == ([], 0)


def test_entries_of_dead_processes_are_reused(simulator: Simulator) -> None:
    """More processes than the table holds may come and go."""
    simulator.add_device()
    beyond_pid_max = 2**22 + 1
    for number in range(layout.PROCESS_LIMIT):
        simulator.set_process(0, beyond_pid_max + number, MIB)
    simulator.set_process(0, os.getpid(), MIB)
    (processes,) = ask(simulator, ["DeviceGetComputeRunningProcesses", 0])
    assert [entry["pid"] for entry in processes] == [os.getpid()]


def test_a_workload_allocates_while_clients_poll(simulator: Simulator) -> None:
    """Processes that attach to the state and allocate at once are all seen until they die."""
    simulator.add_device()
    environment = {**os.environ, "PYTHONPATH": str(TESTS), **simulator.environment()}
    workloads = [
        subprocess.Popen(
            [sys.executable, "-c", WORKLOAD, str((number + 1) * MIB)],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        for number in range(4)
    ]
    for workload in workloads:
        assert workload.stdout is not None
        assert workload.stdout.readline() == b"allocated\n"
    (processes,) = ask(simulator, ["DeviceGetComputeRunningProcesses", 0])
    assert {entry["pid"]: entry["usedGpuMemory"] for entry in processes} == {
        workload.pid: (number + 1) * MIB for number, workload in enumerate(workloads)
    }
    for workload in workloads:
        workload.communicate()
    assert ask(simulator, ["DeviceGetComputeRunningProcesses", 0]) == [[]]


def test_pids_of_other_namespaces(simulator: Simulator, job: subprocess.Popen[bytes]) -> None:
    """Old drivers report host pids inside a container, new ones skip what is outside of it."""
    simulator.add_device()
    simulator.set_process(0, job.pid, MIB)
    simulator.set_process(0, 4_000_123, MIB, foreign=True)
    question = ["DeviceGetComputeRunningProcesses", 0]
    simulator.set_pid_namespace(offset=1_000_000)
    (host,) = ask(simulator, question)
    assert [entry["pid"] for entry in host] == [job.pid + 1_000_000, 4_000_123]
    simulator.set_pid_namespace(hides_foreign=True)
    (translated, memory) = ask(simulator, question, ["DeviceGetMemoryInfo", 0, 0x02000028])
    assert [entry["pid"] for entry in translated] == [job.pid]
    assert memory["used"] == 2 * MIB


# -- injected errors -------------------------------------------------------------------------------


def test_an_error_comes_after_some_calls_and_goes(simulator: Simulator) -> None:
    """A rule strikes one device only, after N matching calls and for M times."""
    simulator.add_device()
    simulator.add_device()
    simulator.fail("nvmlDeviceGetPowerUsage", Code.UNKNOWN, device=1, after=1, times=2)
    answers = ask(simulator, *[["DeviceGetPowerUsage", index] for index in (0, 1, 1, 0, 1, 0, 1)])
    failed = error(Code.UNKNOWN)
    assert answers == [50000, 50000, failed, 50000, failed, 50000, 50000]


def test_rules_can_be_cleared(simulator: Simulator) -> None:
    """Without its rules the driver is healthy again."""
    simulator.add_device()
    simulator.fail("nvmlDeviceGet*Usage", Code.NOT_SUPPORTED)
    assert ask(simulator, ["DeviceGetPowerUsage", 0]) == [error(Code.NOT_SUPPORTED)]
    simulator.clear_rules()
    assert ask(simulator, ["DeviceGetPowerUsage", 0]) == [50000]


def test_initialising_can_fail(simulator: Simulator) -> None:
    """A pattern covers all ways to initialise the library."""
    simulator.fail("nvmlInit*", Code.NO_PERMISSION)
    assert ask(simulator) == [error(Code.NO_PERMISSION)]


def test_an_error_of_the_new_call_leaves_the_old_one_alone(simulator: Simulator) -> None:
    """Memory and processes are still readable by the old calls when the versioned ones fail."""
    simulator.add_device()
    simulator.set_process(0, os.getpid(), MIB)
    simulator.fail("*_v[23]", Code.FUNCTION_NOT_FOUND, device=0, after=1)
    script = """
nvml.nvmlInit_v2()
handle, count, memory = first_handle(), ctypes.c_uint(), (ctypes.c_uint64 * 3)()
answer = [nvml.nvmlDeviceGetComputeRunningProcesses_v3(handle, ctypes.byref(count), None),
          nvml.nvmlDeviceGetComputeRunningProcesses_v2(handle, ctypes.byref(count), None),
          nvml.nvmlDeviceGetComputeRunningProcesses(handle, ctypes.byref(count), None),
          nvml.nvmlDeviceGetMemoryInfo_v2(handle, (ctypes.c_uint64 * 5)(0x02000028)),
          nvml.nvmlDeviceGetMemoryInfo(handle, memory), memory[2]]
"""
    absent = Code.FUNCTION_NOT_FOUND
    answer = ask_raw(simulator, script)
    assert answer == [absent, absent, Code.INSUFFICIENT_SIZE, absent, 0, 513 * MIB]


def test_latency_lasts_at_least_as_long_as_asked(simulator: Simulator) -> None:
    """A delayed call takes its time even if signals arrive, others do not wait for it."""
    simulator.add_device()
    simulator.delay("nvmlDeviceGetPowerUsage", 150)
    script = """
import signal, time
signal.signal(signal.SIGALRM, lambda *_: None)
nvml.nvmlInit_v2()
handle, power = first_handle(), ctypes.c_uint()
signal.setitimer(signal.ITIMER_REAL, 0.02, 0.02)
start = time.monotonic()
code = nvml.nvmlDeviceGetPowerUsage(handle, ctypes.byref(power))
answer = [code, power.value, time.monotonic() - start]
signal.setitimer(signal.ITIMER_REAL, 0)  # else it may hit the interpreter while it ends
"""
    code, power_mw, elapsed_seconds = ask_raw(simulator, script)
    assert (code, power_mw) == (0, 50000)
    assert elapsed_seconds >= 0.15


def test_a_lost_gpu_leaves_the_others_alone(simulator: Simulator) -> None:
    """A GPU that fell off the bus is still counted and answers GPU_IS_LOST until it recovers."""
    simulator.add_device()
    simulator.add_device()
    simulator.lose(1)
    questions: list[list[Any]] = [
        ["DeviceGetCount", None],
        ["DeviceGetPowerUsage", 0],
        ["DeviceGetPowerUsage", 1],
    ]
    assert ask(simulator, *questions) == [2, 50000, error(Code.GPU_IS_LOST)]
    simulator.recover(1)
    assert ask(simulator, *questions) == [2, 50000, 50000]


def test_a_gpu_is_lost_under_an_open_handle(simulator: Simulator) -> None:
    """A handle taken before the loss answers GPU_IS_LOST from then on."""
    simulator.add_device()
    script = """
from nvml_simulator import Simulator
nvml.nvmlInit_v2()
handle, power = first_handle(), ctypes.c_uint()
answer = [nvml.nvmlDeviceGetPowerUsage(handle, ctypes.byref(power))]
with Simulator.open() as simulator:
    simulator.lose(0)
answer.append(nvml.nvmlDeviceGetPowerUsage(handle, ctypes.byref(power)))
answer.append(nvml.nvmlDeviceGetPowerUsage(ctypes.c_void_p(1), ctypes.byref(power)))
"""
    assert ask_raw(simulator, script) == [0, Code.GPU_IS_LOST, Code.INVALID_ARGUMENT]


@needs_gpustat
def test_gpustat_shows_a_lost_gpu(simulator: Simulator) -> None:
    """gpustat lists the healthy GPU and marks the lost one."""
    simulator.add_device()
    simulator.add_device()
    simulator.lose(1)
    healthy, lost = ask_gpustat(simulator)
    assert healthy["memory.total"] == 40960
    assert "lost" in lost["name"]


def test_a_denied_gpu_is_counted_but_not_opened(simulator: Simulator) -> None:
    """The count includes a GPU whose handle call answers NO_PERMISSION."""
    simulator.add_device()
    simulator.deny(0)
    answers = ask(simulator, ["DeviceGetCount", None], ["DeviceGetName", 0])
    assert answers == [1, error(Code.NO_PERMISSION)]


# -- the contract of the library -------------------------------------------------------------------


def test_before_initialisation_nothing_answers(simulator: Simulator) -> None:
    """Calls before init and after the last shutdown are UNINITIALIZED; inits are counted."""
    script = """
count = ctypes.c_uint()
def ask(): return nvml.nvmlDeviceGetCount_v2(ctypes.byref(count))
answer = [nvml.nvmlShutdown(), ask(), nvml.nvmlInit_v2(), nvml.nvmlInitWithFlags(0),
          nvml.nvmlShutdown(), ask(), nvml.nvmlShutdown(), ask(), nvml.nvmlShutdown()]
"""
    assert ask_raw(simulator, script) == [1, 1, 0, 0, 0, 0, 0, 1, 0]


def test_a_forked_child_has_to_initialise_again(simulator: Simulator) -> None:
    """NVML is not inherited over fork, and initialising in the child does not hurt the parent."""
    script = """
count = ctypes.c_uint()
nvml.nvmlInit_v2()
inside, outside = os.pipe()
if os.fork() == 0:
    codes = [nvml.nvmlDeviceGetCount_v2(ctypes.byref(count)), nvml.nvmlShutdown(),
             nvml.nvmlInit_v2(), nvml.nvmlDeviceGetCount_v2(ctypes.byref(count))]
    os.write(outside, json.dumps(codes).encode())
    os._exit(0)
os.wait()
answer = [json.loads(os.read(inside, 100)), nvml.nvmlDeviceGetCount_v2(ctypes.byref(count))]
"""
    assert ask_raw(simulator, script) == [[1, 1, 0, 0], 0]
    assert len(set(simulator.clients())) == 2


def test_process_lists_report_the_size_they_need(simulator: Simulator) -> None:
    """A probe answers SUCCESS if nothing runs, else INSUFFICIENT_SIZE and the number of entries."""
    simulator.add_device()
    simulator.set_process(0, os.getpid(), MIB)
    simulator.set_process(0, os.getppid(), MIB)
    script = """
nvml.nvmlInit_v2()
handle, buffer, answer = first_handle(), ctypes.create_string_buffer(24 * 2), []
for kind, capacity in (("Graphics", 0), ("Compute", 0), ("Compute", 1), ("Compute", 2)):
    count = ctypes.c_uint(capacity)
    function = getattr(nvml, f"nvmlDeviceGet{kind}RunningProcesses_v3")
    code = function(handle, ctypes.byref(count), buffer if capacity else None)
    answer.append([code, count.value])
"""
    short = Code.INSUFFICIENT_SIZE
    assert ask_raw(simulator, script) == [[0, 0], [short, 2], [short, 2], [0, 2]]


def test_a_wrong_structure_version_is_refused(simulator: Simulator) -> None:
    """The versioned memory call insists on the version of its structure."""
    simulator.add_device()
    answers = ask(simulator, ["DeviceGetMemoryInfo", 0, 0x01000028])
    assert answers == [error(Code.ARGUMENT_VERSION_MISMATCH)]


def test_calls_and_clients_are_counted(simulator: Simulator) -> None:
    """The simulator counts calls per function, and lists the processes that made them."""
    simulator.add_device()
    ask(simulator, ["DeviceGetPowerUsage", 0], ["DeviceGetPowerUsage", 0])
    ask(simulator, ["DeviceGetPowerUsage", 0])
    assert simulator.calls() == {
        "nvmlInitWithFlags": 2,
        "nvmlDeviceGetHandleByIndex_v2": 3,
        "nvmlDeviceGetPowerUsage": 3,
    }
    assert len(set(simulator.clients())) == 2
    simulator.clear_calls()
    assert simulator.calls() == {}


# -- driver generations ----------------------------------------------------------------------------

READ_ENTRIES = """
nvml.nvmlInit_v2()
def read(function, entry_bytes):
    count, buffer = ctypes.c_uint(8), ctypes.create_string_buffer(32 * 8)
    code = getattr(nvml, function)(first_handle(), ctypes.byref(count), buffer)
    starts = [place * entry_bytes for place in range(count.value if code == 0 else 0)]
    number = lambda place, size: int.from_bytes(buffer.raw[place:place + size], "little")
    return [code, [[number(start, 4), number(start + 8, 8)] for start in starts]]
prefix = "nvmlDeviceGetComputeRunningProcesses"
answer = [read(prefix, 16), read(prefix + "_v2", 24), read(prefix + "_v3", %d)]
"""


@pytest.mark.parametrize(
    ("generation", "v3_entry_bytes", "codes"),
    [
        (Generation.V1, 24, [0, 13, 13]),
        (Generation.V2, 24, [0, 0, 13]),
        (Generation.V3_WIDE_ENTRIES, 32, [0, 0, 0]),
        (Generation.V3, 24, [0, 0, 0]),
    ],
)
def test_each_generation_has_its_own_lists(
    simulator: Simulator, generation: Generation, v3_entry_bytes: int, codes: list[int]
) -> None:
    """Each list version has its entry size, and versions younger than the driver do not exist."""
    simulator.add_device()
    simulator.set_process(0, os.getpid(), 3 * MIB)
    simulator.set_process(0, os.getppid(), 5 * MIB)
    simulator.set_generation(generation)
    entries = [[os.getpid(), 3 * MIB], [os.getppid(), 5 * MIB]]
    answer = ask_raw(simulator, READ_ENTRIES % v3_entry_bytes)
    assert answer == [[code, [] if code else entries] for code in codes]


def test_an_old_driver_has_only_the_old_memory_call(simulator: Simulator) -> None:
    """On a v1 driver the versioned memory call is missing and the plain one works."""
    simulator.add_device()
    simulator.set_generation(Generation.V1)
    old, new = ask(simulator, ["DeviceGetMemoryInfo", 0], ["DeviceGetMemoryInfo", 0, 0x02000028])
    assert old["used"] == 512 * MIB
    assert new == error(Code.FUNCTION_NOT_FOUND)


@needs_nvitop
@pytest.mark.parametrize("generation", list(Generation))
def test_nvitop_reads_processes_of_every_generation(
    tmp_path: Path, job: subprocess.Popen[bytes], generation: Generation
) -> None:
    """nvitop looks for symbols, so a library built as that generation is read correctly."""
    library = build(tmp_path, generation)
    with Simulator(library, tmp_path / "state", generation=generation) as simulator:
        simulator.add_device()
        simulator.set_process(0, job.pid, 3 * MIB, sm_percent=7)
        simulator.set_process(0, os.getpid(), 5 * MIB)
        (device,) = ask_nvitop(simulator)
    assert device["processes"] == {str(job.pid): [3 * MIB, 7], str(os.getpid()): [5 * MIB, 0]}


@needs_gpustat
def test_gpustat_falls_back_to_the_second_list(tmp_path: Path) -> None:
    """gpustat uses the _v2 list and the plain memory call when the library has nothing newer."""
    library = build(tmp_path, Generation.V2)
    with Simulator(library, tmp_path / "state", generation=Generation.V2) as simulator:
        simulator.add_device()
        simulator.set_process(0, os.getpid(), 5 * MIB)
        (device,) = ask_gpustat(simulator)
        calls = simulator.calls()
    assert [entry["pid"] for entry in device["processes"]] == [os.getpid()]
    assert device["memory.used"] == 517
    assert "nvmlDeviceGetComputeRunningProcesses_v2" in calls


def test_nvidia_ml_py_misreads_wide_entries(simulator: Simulator) -> None:
    """On drivers 535.43 to 535.86 nvidia-ml-py gets the second pid wrong, as in the field."""
    simulator.add_device()
    simulator.set_process(0, os.getpid(), 3 * MIB)
    simulator.set_process(0, os.getppid(), 5 * MIB)
    simulator.set_generation(Generation.V3_WIDE_ENTRIES)
    (processes,) = ask(simulator, ["DeviceGetComputeRunningProcesses", 0])
    assert processes[0]["pid"] == os.getpid()
    assert processes[1]["pid"] != os.getppid()


# -- samples, energy, accounting, MIG --------------------------------------------------------------


def test_process_samples_newer_than_the_last_seen(simulator: Simulator) -> None:
    """Each pid has its newest sample, older ones are filtered, nothing newer is NOT_FOUND."""
    simulator.add_device()
    simulator.push_process_utilization_sample(0, 10, 20, timestamp_us=1000)
    simulator.push_process_utilization_sample(0, 10, 30, 4, timestamp_us=2000)
    simulator.push_process_utilization_sample(0, 11, 255, timestamp_us=1500)
    everything, later, nothing = ask(
        simulator, *[["DeviceGetProcessUtilization", 0, since] for since in (0, 1500, 2000)]
    )
    seen = [(s["pid"], s["timeStamp"], s["smUtil"], s["memUtil"]) for s in everything]
    assert seen == [(10, 2000, 30, 4), (11, 1500, 255, 0)]
    assert [sample["pid"] for sample in later] == [10]
    assert nothing == error(Code.NOT_FOUND)


def test_running_processes_are_sampled_by_themselves(
    simulator: Simulator, job: subprocess.Popen[bytes]
) -> None:
    """Without explicit samples a busy process yields its own, and none after its death."""
    simulator.add_device()
    simulator.set_process(0, job.pid, MIB, sm_percent=35, memory_percent=5)
    (samples,) = ask(simulator, ["DeviceGetProcessUtilization", 0, 0])
    assert [(s["pid"], s["smUtil"], s["memUtil"]) for s in samples] == [(job.pid, 35, 5)]
    become_zombie(job)
    assert ask(simulator, ["DeviceGetProcessUtilization", 0, 0]) == [error(Code.NOT_FOUND)]


def test_the_probe_for_process_samples_is_a_constant(simulator: Simulator) -> None:
    """Asked for the size, the driver answers one hundred whatever there is."""
    simulator.add_device()
    script = """
nvml.nvmlInit_v2()
count, since = ctypes.c_uint(), ctypes.c_uint64()
code = nvml.nvmlDeviceGetProcessUtilization(first_handle(), None, ctypes.byref(count), since)
answer = [code, count.value]
"""
    assert ask_raw(simulator, script) == [Code.INSUFFICIENT_SIZE, 100]


def test_the_process_sample_buffer_is_a_ring(simulator: Simulator) -> None:
    """The buffer keeps the newest samples and forgets the oldest."""
    simulator.add_device()
    for number in range(layout.PROCESS_SAMPLE_LIMIT + 2):
        simulator.push_process_utilization_sample(0, 100 + number, 1, timestamp_us=1 + number)
    (samples,) = ask(simulator, ["DeviceGetProcessUtilization", 0, 0])
    assert len(samples) == layout.PROCESS_SAMPLE_LIMIT
    assert samples[0]["pid"] == 102


def test_device_samples(simulator: Simulator) -> None:
    """Utilization and power samples come in order, filtered by time; none at all is NOT_FOUND."""
    simulator.add_device()
    for second, percent in enumerate((10, 90, 50), start=1):
        simulator.push_sample(0, "gpu_utilization", percent, timestamp_us=second)
    simulator.push_sample(0, "power", 61000, timestamp_us=9)
    every, newer, power, memory, other = ask(
        simulator,
        ["DeviceGetSamples", 0, 1, 0],
        ["DeviceGetSamples", 0, 1, 2],
        ["DeviceGetSamples", 0, 0, 0],
        ["DeviceGetSamples", 0, 2, 0],
        ["DeviceGetSamples", 0, 3, 0],
    )
    assert [(s["timeStamp"], s["sampleValue"]["uiVal"]) for s in every[1]] == [
        (1, 10),
        (2, 90),
        (3, 50),
    ]
    assert [sample["sampleValue"]["uiVal"] for sample in newer[1]] == [50]
    assert [sample["sampleValue"]["uiVal"] for sample in power[1]] == [61000]
    assert (memory, other) == (error(Code.NOT_FOUND), error(Code.NOT_SUPPORTED))


def test_energy_is_the_integral_of_power(simulator: Simulator) -> None:
    """The counter grows with the power, goes on when that changes, and stands where it is put."""
    simulator.add_device(power_watts=1000)
    question = ["DeviceGetTotalEnergyConsumption", 0]
    simulator.set_energy_joules(0, 5.0, integrates=True)
    first, second = ask(simulator, question), ask(simulator, question)
    assert 5000 < first[0] < second[0]
    simulator.set_power_watts(0, 0)
    still, unchanged = ask(simulator, question), ask(simulator, question)
    assert second[0] < still[0] == unchanged[0]
    simulator.set_energy_joules(0, 12.5)
    simulator.set_power_watts(0, 300)
    assert ask(simulator, question, ["DeviceGetPowerUsage", 0]) == [12500, 300000]


def test_accounting_remembers_the_peak(simulator: Simulator, job: subprocess.Popen[bytes]) -> None:
    """Accounting is NOT_SUPPORTED while off; on, it keeps the peak also after the process's end."""
    simulator.add_device()
    off = ask(simulator, ["DeviceGetAccountingMode", 0], ["DeviceGetAccountingPids", 0])
    assert off == [0, error(Code.NOT_SUPPORTED)]
    simulator.set_accounting(0, True)
    for used_bytes in (1 * MIB, 9 * MIB, 2 * MIB):
        simulator.set_process(0, job.pid, used_bytes, sm_percent=12)
    questions: list[list[Any]] = [
        ["DeviceGetAccountingPids", 0],
        ["DeviceGetAccountingStats", 0, job.pid],
    ]
    pids, alive = ask(simulator, *questions)
    become_zombie(job)
    _, dead = ask(simulator, *questions)
    assert pids == [job.pid]
    assert (alive["maxMemoryUsage"], alive["gpuUtilization"]) == (9 * MIB, 12)
    assert (alive["isRunning"], alive["time"]) == (1, 0)
    assert (dead["isRunning"], dead["maxMemoryUsage"]) == (0, 9 * MIB)
    missing = ask(simulator, ["DeviceGetAccountingStats", 0, 1])
    assert missing == [error(Code.NOT_FOUND)]


def test_mig_is_not_supported_by_default(simulator: Simulator) -> None:
    """An ordinary GPU has no MIG mode; a capable one reports it disabled."""
    simulator.add_device()
    simulator.add_device(mig_capable=True)
    assert ask(
        simulator,
        ["DeviceGetMigMode", 0],
        ["DeviceGetMigMode", 1],
        ["DeviceGetMaxMigDeviceCount", 0],
        ["DeviceGetMigDeviceHandleByIndex", 0, 0],
        ["DeviceGetGpuInstanceId", 0],
        ["DeviceIsMigDeviceHandle", 0],
    ) == [
        error(Code.NOT_SUPPORTED),
        [0, 0],
        0,
        error(Code.NOT_SUPPORTED),
        error(Code.NOT_SUPPORTED),
        0,
    ]


@needs_nvitop
def test_mig_instances_have_their_own_memory(simulator: Simulator, job: subprocess.Popen[bytes]) -> None:
    """nvitop finds the instances of a GPU; the GPU has the sum of memory and no utilization."""
    simulator.add_device(mig_capable=True)
    first = simulator.add_mig_instance(0, uuid="MIG-first")
    second = simulator.add_mig_instance(0, uuid="MIG-second")
    simulator.set_process(first, job.pid, 3 * MIB)
    simulator.set_process(second, job.pid, 5 * MIB)
    simulator.set_process(second, os.getpid(), 7 * MIB)
    (gpu,) = ask_nvitop(simulator)
    assert gpu["mig"] == [
        ["MIG-first", 3 * MIB, [job.pid]],
        ["MIG-second", 12 * MIB, [job.pid, os.getpid()]],
    ]
    mode, utilization, processes, memory = ask(
        simulator,
        ["DeviceGetMigMode", 0],
        ["DeviceGetUtilizationRates", 0],
        ["DeviceGetComputeRunningProcesses", 0],
        ["DeviceGetMemoryInfo", 0, 0x02000028],
    )
    assert (mode, utilization) == ([1, 1], error(Code.NOT_SUPPORTED))
    assert [(entry["pid"], entry["gpuInstanceId"]) for entry in processes] == [
        (job.pid, 1),
        (job.pid, 2),
        (os.getpid(), 2),
    ]
    assert memory["used"] == 15 * MIB


# -- what drivers do in the field, by everybody's clients ------------------------------------------


def ask_ourselves(simulator: Simulator) -> Any:
    """The rows of `gpu-tracker query`: pid, bytes, percent."""
    fields = "--process-fields=pid,used_memory,utilization.sm"
    return [
        json.loads(line)
        for line in run(simulator, "-m", "gpu_tracker", "query", fields, "--format=json").splitlines()
    ]


@needs_gpustat
@needs_nvitop
def test_everybody_on_the_dead_and_the_foreign(simulator: Simulator, job: subprocess.Popen[bytes]) -> None:
    """nvidia-ml-py, nvitop and we list them; gpustat leaves out those whose command it cannot look up."""
    simulator.add_device(memory_reserved_bytes=0)
    dead, foreign = 2**22 + 1, 2**22 + 2
    simulator.set_process(0, job.pid, 300 * MIB)
    simulator.set_process(0, dead, 200 * MIB, lingers=True)
    simulator.set_process(0, foreign, 100 * MIB, foreign=True)
    everyone = {job.pid: 300 * MIB, dead: 200 * MIB, foreign: 100 * MIB}
    (listed,) = ask(simulator, ["DeviceGetComputeRunningProcesses", 0])
    (by_gpustat,), (by_nvitop,) = ask_gpustat(simulator), ask_nvitop(simulator)

    assert {one["pid"]: one["usedGpuMemory"] for one in listed} == everyone
    assert {one["pid"]: one["used_gpu_memory"] for one in ask_ourselves(simulator)} == everyone
    assert by_gpustat["memory.used"] == 600
    assert {one["pid"]: one["gpu_memory_usage"] for one in by_gpustat["processes"]} == {job.pid: 300}
    assert by_nvitop["memory_used"] == 600 * MIB
    assert {int(pid): held for pid, (held, _) in by_nvitop["processes"].items()} == everyone


@needs_gpustat
@needs_nvitop
def test_everybody_on_memory_that_turns_unknown_and_back(
    simulator: Simulator, job: subprocess.Popen[bytes]
) -> None:
    """Each has its own word for it: None, N/A, null."""
    simulator.add_device(memory_reserved_bytes=0)
    seen = []
    for size in (300 * MIB, None, 200 * MIB):
        simulator.set_process(0, job.pid, size)
        (listed,) = ask(simulator, ["DeviceGetComputeRunningProcesses", 0])
        (by_gpustat,), (by_nvitop,) = ask_gpustat(simulator), ask_nvitop(simulator)
        (ours,) = ask_ourselves(simulator)
        seen.append(
            (
                listed[0]["usedGpuMemory"],
                by_gpustat["processes"][0]["gpu_memory_usage"],
                by_nvitop["processes"][str(job.pid)][0],
                ours["used_gpu_memory"],
            )
        )

    assert seen == [
        (300 * MIB, 300, 300 * MIB, 300 * MIB),
        (None, None, "N/A", None),
        (200 * MIB, 200, 200 * MIB, 200 * MIB),
    ]


@needs_nvitop
@pytest.mark.parametrize("hertz", [1, 10])
def test_everybody_on_samples_that_name_one_process(
    simulator: Simulator, job: subprocess.Popen[bytes], hertz: int
) -> None:
    """nvitop takes each process's newest sample for all of the last second; we share the second among them."""
    simulator.add_device()
    simulator.set_process(0, job.pid, MIB, sm_percent=80)
    simulator.set_process(0, os.getpid(), MIB, sm_percent=60)
    with simulator.sampling(hertz):
        (samples,) = wait_for_samples(simulator, 3)
        ours = {one["pid"]: one["utilization.sm"] for one in ask_ourselves(simulator)}
        (by_nvitop,) = ask_nvitop(simulator)

    percents = {job.pid: 80, os.getpid(): 60}
    assert all(sample["smUtil"] == percents[sample["pid"]] for sample in samples)
    assert all(one["pid"] != following["pid"] for one, following in pairwise(samples))
    assert all(0 <= ours[pid] <= percent for pid, percent in percents.items())
    assert sum(ours.values()) == pytest.approx(70, abs=10)
    assert all(by_nvitop["processes"][str(pid)][1] in (0, percent) for pid, percent in percents.items())


def wait_for_samples(simulator: Simulator, count: int) -> Any:
    """What nvidia-ml-py returns when there are so many samples."""
    for _ in range(100):
        answer = ask(simulator, ["DeviceGetProcessUtilization", 0, 1])
        if isinstance(answer[0], list) and len(answer[0]) >= count:
            break
    return answer


@pytest.mark.parametrize("function", ["nvmlInit*", "nvmlDeviceGetName", "nvmlDeviceGetMemoryInfo"])
def test_a_call_hangs_until_it_is_released(simulator: Simulator, function: str) -> None:
    """At any call, from any time on, for any client."""
    simulator.add_device()
    simulator.hang(function)
    environment = {**os.environ, **simulator.environment()}
    questions = json.dumps([["DeviceGetName", 0], ["DeviceGetMemoryInfo", 0]])
    with subprocess.Popen(
        [sys.executable, "-c", PYNVML_CLIENT, questions], env=environment, stdout=subprocess.PIPE, text=True
    ) as client:
        while not any(re.match(function.rstrip("*"), name) for name in simulator.calls()):
            assert client.poll() is None
        assert client.poll() is None
        simulator.clear_rules()
        name, memory = json.loads(client.communicate(timeout=60)[0])

    assert (name, memory["total"]) == ("NVIDIA Simulated GPU", 40960 * MIB)

"""Building the simulated library, whole or as an older driver would have it.

An old driver does not answer "function not found": its library lacks the symbol, and clients look
for symbols. So a generation can be built for real (symbols hidden by the linker) as well as
switched on in the state of the whole library (the calls answer FUNCTION_NOT_FOUND).
"""

from __future__ import annotations

import enum
import subprocess
from pathlib import Path

LIBRARY_NAME = "libnvidia-ml.so.1"
_SOURCE = Path(__file__).with_name("nvml_simulator.c")


class Generation(enum.IntEnum):
    """Driver generations that differ in what their library offers to a client."""

    V1 = 1  #: before 450: 16-byte process entries, memory without "reserved", no MIG
    V2 = 2  #: 450 to 509: 24-byte process entries, memory still without "reserved"
    V3_WIDE_ENTRIES = 3  #: 535.43 to 535.86: the _v3 process lists wrote 32-byte entries by mistake
    V3 = 4  #: everything since


_FIRST_GENERATION = {
    "nvmlDeviceGetComputeRunningProcesses_v2": Generation.V2,
    "nvmlDeviceGetGraphicsRunningProcesses_v2": Generation.V2,
    "nvmlDeviceGetMPSComputeRunningProcesses": Generation.V2,
    "nvmlDeviceGetMPSComputeRunningProcesses_v2": Generation.V2,
    "nvmlDeviceGetMigMode": Generation.V2,
    "nvmlDeviceGetMaxMigDeviceCount": Generation.V2,
    "nvmlDeviceGetMigDeviceHandleByIndex": Generation.V2,
    "nvmlDeviceIsMigDeviceHandle": Generation.V2,
    "nvmlDeviceGetGpuInstanceId": Generation.V2,
    "nvmlDeviceGetComputeInstanceId": Generation.V2,
    "nvmlDeviceGetDeviceHandleFromMigDeviceHandle": Generation.V2,
    "nvmlDeviceGetComputeRunningProcesses_v3": Generation.V3_WIDE_ENTRIES,
    "nvmlDeviceGetGraphicsRunningProcesses_v3": Generation.V3_WIDE_ENTRIES,
    "nvmlDeviceGetMPSComputeRunningProcesses_v3": Generation.V3_WIDE_ENTRIES,
    "nvmlDeviceGetMemoryInfo_v2": Generation.V3_WIDE_ENTRIES,
    "nvmlDeviceGetCurrentClocksEventReasons": Generation.V3_WIDE_ENTRIES,
    "nvmlDeviceGetConfComputeMemSizeInfo": Generation.V3_WIDE_ENTRIES,
    "nvmlGpmQueryDeviceSupport": Generation.V3_WIDE_ENTRIES,
    "nvmlGpmSampleAlloc": Generation.V3_WIDE_ENTRIES,
    "nvmlGpmSampleFree": Generation.V3_WIDE_ENTRIES,
    "nvmlGpmSampleGet": Generation.V3_WIDE_ENTRIES,
    "nvmlGpmMigSampleGet": Generation.V3_WIDE_ENTRIES,
    "nvmlGpmMetricsGet": Generation.V3_WIDE_ENTRIES,
    "nvmlDeviceGetRunningProcessDetailList": Generation.V3,
    "nvmlDeviceGetTemperatureV": Generation.V3,
}


def absent_functions(generation: Generation) -> tuple[str, ...]:
    """Name the functions that drivers of this generation did not have yet."""
    return tuple(name for name, first in _FIRST_GENERATION.items() if first > generation)


def build(directory: Path, generation: Generation = Generation.V3) -> Path:
    """Compile the library into a directory and return its path; takes less than a second."""
    library = directory / LIBRARY_NAME
    # A name spelled out outweighs a pattern, so the absent functions stay local.
    script = directory / "exports.map"
    local = "".join(f" {name};" for name in absent_functions(generation))
    script.write_text(f"{{ global: nvml*; local: *;{local} }};\n")
    command = ["cc", "-shared", "-fPIC", "-O2", "-Wall", "-Wextra", "-Werror"]
    command += [f"-Wl,-soname,{LIBRARY_NAME}", f"-Wl,--version-script={script}"]
    subprocess.run([*command, "-o", str(library), str(_SOURCE)], check=True)
    return library

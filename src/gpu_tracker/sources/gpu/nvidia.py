"""What NVML and nvidia-smi have in common. Small, because it is imported on machines without a GPU, too."""

from __future__ import annotations

import os
import sys

from ..files import read_file

if sys.platform != "win32":
    from _ctypes import (  # what ctypes calls, without the cost of importing all of it
        call_function,
        dlopen,
        dlsym,
    )

LIBRARY = "nvml.dll" if sys.platform == "win32" else "libnvidia-ml.so.1"
_SIGNALLED = 128  # as a shell reports the number of a signal
_LOADER_CACHE = "/etc/ld.so.cache"
_LOADER_FOLDERS = ("/lib64", "/usr/lib64", "/lib", "/usr/lib")
SMI = "nvidia-smi.exe" if sys.platform == "win32" else "nvidia-smi"
_OTHER_FOLDERS = ("/usr/lib/wsl/lib",)  # WSL's, often not on the PATH
# The driver's throttle bits and their causes. Idleness and user-set clocks are not throttling.
_LIMITS = ((0x04 | 0x80, "power"), (0x20 | 0x40, "heat"), (0x08, "hardware"))
_HARDWARE_LIMIT_ALONE = 0x08
_HARDWARE_LIMIT_EXPLAINED = 0x40 | 0x80


def may_have_devices() -> bool:
    """Whether there is anything to ask for them."""
    return find_library() or find_smi() is not None


def find_library() -> bool:
    """Whether there is the driver's library. It is loaded only if it is in no usual place: that may take long."""
    if sys.platform == "win32":
        return any(map(os.path.exists, _list_dlls()))
    folders = (*os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep), *_LOADER_FOLDERS)
    return (
        any(folder and os.path.exists(f"{folder}/{LIBRARY}") for folder in folders)
        or _is_in_the_loaders_cache()
        or _try_to_load() is None
    )


def why_not_loaded() -> str | None:
    """What is wrong if the driver's library cannot be loaded. Call this where nobody waits: it may take long, or hang.

    While a library is loaded no other can be, not even a module of Python's, in no thread. So another process tries
    first, which also shows whether it crashes. Then it is loaded without holding the interpreter's lock, which `dlopen`
    does not release.
    """
    if sys.platform == "win32":
        return _try_to_load_dll()
    if _try_to_load(os.RTLD_NOLOAD) is None:
        return None
    if find_library():
        from ..command import run

        (answer,) = run([["env", f"LD_PRELOAD={LIBRARY}", "true"]], float("inf"))
        status = answer.status or 0
        if status > _SIGNALLED:
            return f"it crashes (signal {status - _SIGNALLED})"
        call_function(dlsym(dlopen("", 0), "dlopen"), (LIBRARY.encode(), os.RTLD_NOW))
    return _try_to_load()


def is_no_such_file(reason: str) -> bool:
    """Whether the loader has found no library at all."""
    return "No such file" in reason


def _is_in_the_loaders_cache() -> bool:
    try:
        return LIBRARY.encode() in read_file(_LOADER_CACHE)
    except OSError:
        return False


def _try_to_load(mode: int = 0) -> str | None:
    """What the loader says if it fails."""
    try:
        dlopen(LIBRARY, mode)
    except OSError as error:
        return str(error)
    return None


def _list_dlls() -> list[str]:
    """Where nvidia-ml-py looks for the driver's library on Windows, the newest drivers' place first."""
    system = os.path.join(os.environ.get("WINDIR", "C:/Windows"), "System32")
    older = os.path.join(os.environ.get("PROGRAMFILES", "C:/Program Files"), "NVIDIA Corporation", "NVSMI")
    return [os.path.join(folder, LIBRARY) for folder in (system, older)]


def _try_to_load_dll() -> str | None:
    import ctypes

    reason = f"{LIBRARY}: No such file"
    for path in filter(os.path.exists, _list_dlls()):
        try:
            ctypes.CDLL(path)
        except OSError as error:
            reason = str(error)
        else:
            return None
    return reason


def find_smi() -> str | None:
    """The path of nvidia-smi."""
    for folder in (*os.environ.get("PATH", os.defpath).split(os.pathsep), *_OTHER_FOLDERS):
        path = os.path.join(folder or ".", SMI)
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return os.path.abspath(path)
    return None


def name_limits(mask: int) -> tuple[str, ...]:
    """The causes of throttling in the driver's bit mask."""
    if mask & _HARDWARE_LIMIT_EXPLAINED:
        mask &= ~_HARDWARE_LIMIT_ALONE
    return tuple(word for bits, word in _LIMITS if mask & bits)


def parse_bus_id(text: str) -> str:
    """`00000000:4F:00.0` as the kernel writes it: `0000:4f:00.0`."""
    domain, colon, rest = text.strip().lower().partition(":")
    return f"{domain.lstrip('0').zfill(4)}{colon}{rest}" if colon else domain

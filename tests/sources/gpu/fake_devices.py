"""A fake machine with graphics cards: the files of `/sys` and `/proc`, written by tests."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from gpu_tracker.sources import Roots

MIB = 1024 * 1024
GIB = 1024 * MIB
NOBODY = 65534
# Real kernel files that can be opened but not read, each with another errno.
GIVES_EINVAL = "/proc/self/ns/pid"
GIVES_EIO = "/proc/self/mem"


class FakeClock:
    """A clock set by hand."""

    def __init__(self) -> None:
        self.seconds = 100.0

    def __call__(self) -> float:
        """Now."""
        return self.seconds


def write_files(directory: Path, files: Mapping[str, object]) -> None:
    """Write files by their relative names; a Path as content becomes a link to it."""
    for name, content in files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_symlink():
            path.unlink()
        if isinstance(content, Path):
            path.unlink(missing_ok=True)
            path.symlink_to(content)
        else:
            path.write_text(f"{content}\n")


class FakeMachine:
    """The kernel's file trees, in a directory."""

    def __init__(self, directory: Path) -> None:
        self.proc, self.sys, self.share = (directory / name for name in ("proc", "sys", "share"))
        self.roots = Roots(str(self.proc), str(self.sys), str(self.share))
        write_files(self.proc, {"sys/kernel/osrelease": "6.18.1", "self/ns/pid": Path("pid:[4026531836]")})

    def find_device(self, bus_id: str) -> Path:
        """The directory of a PCI device."""
        return self.sys / "devices/pci0000:00" / bus_id

    def add_card(
        self,
        number: int,
        bus_id: str,
        vendor: str,
        driver: str,
        files: Mapping[str, object],
        device_id: str = "0x73bf",
    ) -> Path:
        """Add a card; returns the directory of its PCI device."""
        device = self.find_device(bus_id)
        card = device / "drm" / f"card{number}"
        (device / "drm" / f"renderD{128 + number}").mkdir(parents=True)
        card.mkdir()
        (card / "device").symlink_to("../..")
        shown = self.sys / "class/drm"
        shown.mkdir(parents=True, exist_ok=True)
        (shown / f"card{number}").symlink_to(os.path.relpath(card, shown))
        (shown / f"card{number}-DP-1").mkdir(exist_ok=True)
        (self.sys / "bus/pci/drivers" / driver).mkdir(parents=True, exist_ok=True)
        uevent = f"DRIVER={driver}\nPCI_CLASS=30000\nPCI_SLOT_NAME={bus_id}\nMODALIAS=pci:"
        write_files(device, {"vendor": vendor, "device": device_id, "uevent": uevent, **files})
        (device / "driver").symlink_to(os.path.relpath(self.sys / "bus/pci/drivers" / driver, device))
        return device

    def add_amd_card(
        self, number: int = 0, bus_id: str = "0000:03:00.0", gpu_id: int = 100, **changes: object
    ) -> Path:
        """Add a discrete AMD card with every figure; `changes` overwrite files by name."""
        device = self.add_card(number, bus_id, "0x1002", "amdgpu", AMD_FILES)
        write_files(device, {"unique_id": f"{gpu_id:016x}"})
        write_files(device, changes)
        self.add_kfd_node(number + 1, gpu_id, bus_id)
        return device

    def add_kfd_node(self, number: int, gpu_id: int, bus_id: str) -> None:
        """Add a node to ROCm's topology."""
        domain, bus, slot = bus_id.split(":")
        device, function = slot.split(".")
        location = int(bus, 16) << 8 | int(device, 16) << 3 | int(function)
        properties = (
            "cpu_cores_count 0\nsimd_count 160\nsimd_per_cu 2\nsimd_arrays_per_engine 2\narray_count 4\ncu_per_simd_array 10\nmem_banks_count 1\nio_links_count 0\nhive_id 0\n"
            f"location_id {location}\ndomain {int(domain, 16)}\ndrm_render_minor {127 + number}"
        )
        processor = {"gpu_id": 0, "properties": "cpu_cores_count 16\nlocation_id 0\ndomain 0"}
        card = {"gpu_id": gpu_id, "name": "navi21", "properties": properties}
        for name, files in ((0, processor), (number, card)):
            directory = self.sys / "class/kfd/kfd/topology/nodes" / str(name)
            write_files(directory, files)
            (directory / "io_links").mkdir(exist_ok=True)

    def set_kfd_bytes(self, pid: int, sizes: Mapping[int, object]) -> None:
        """Set what a process holds through ROCm, by ROCm's number of the card."""
        files: dict[str, object] = {"pasid": 32768 + pid}
        for number, (gpu_id, size) in enumerate(sizes.items()):
            files |= {f"vram_{gpu_id}": size, f"sdma_{gpu_id}": 0, f"stats_{gpu_id}/cu_occupancy": 0}
            files |= {f"queues/{number}/gpuid": gpu_id} if size else {}
        write_files(self.sys / "class/kfd/kfd/proc" / str(pid), files)

    def add_intel_card(self, number: int, bus_id: str, driver: str, files: Mapping[str, object]) -> Path:
        """Add an Intel GPU; names that begin with `card/` are files of the card, not of its PCI device."""
        own = {name: content for name, content in files.items() if not name.startswith("card/")}
        device = self.add_card(number, bus_id, "0x8086", driver, own, device_id="0x56a0")
        of_card = {name[5:]: content for name, content in files.items() if name.startswith("card/")}
        write_files(self.sys / f"class/drm/card{number}", of_card)
        return device

    def remove_card(self, number: int, bus_id: str) -> None:
        """Unplug a card."""
        (self.sys / f"class/drm/card{number}").unlink()
        shutil.rmtree(self.find_device(bus_id))

    def set_process(self, pid: int, fds: Mapping[int, str], node: str = "/dev/dri/renderD128") -> None:
        """Add a process with these descriptors of a graphics card, besides ordinary ones."""
        self.remove_process(pid)
        directory = self.proc / str(pid)
        write_files(directory / "fd", {"0": Path("/dev/null"), "1": Path("pipe:[1234]")})
        write_files(directory / "fdinfo", {"0": "pos:\t0\nflags:\t0100002", "1": "pos:\t0"})
        for fd, text in fds.items():
            write_files(directory / "fd", {str(fd): Path(node)})
            write_files(directory / "fdinfo", {str(fd): text})

    def remove_process(self, pid: int) -> None:
        """End a process."""
        shutil.rmtree(self.proc / str(pid), ignore_errors=True)


AMD_FILES = {
    "mem_info_vram_total": 16 * GIB,
    "mem_info_vram_used": 3 * GIB,
    "mem_info_gtt_total": 32 * GIB,
    "mem_info_gtt_used": 100 * MIB,
    "gpu_busy_percent": 87,
    "mem_busy_percent": 41,
    "unique_id": "0000000000000064",
    "vbios_version": "113-D4120500-101",
    "current_link_width": 16,
    "pp_dpm_sclk": "0: 500Mhz\n1: 1825Mhz *\n2: 2575Mhz",
    "pp_dpm_mclk": "0: 96Mhz\n1: 1000Mhz *",
    "power/runtime_status": "active",
    "hwmon/hwmon3/name": "amdgpu",
    "hwmon/hwmon3/power1_average": 203_500_000,
    "hwmon/hwmon3/power1_cap": 255_000_000,
    "hwmon/hwmon3/energy1_input": 12_345_678,
    "hwmon/hwmon3/temp1_input": 64_000,
    "hwmon/hwmon3/temp1_label": "edge",
    "hwmon/hwmon3/temp1_crit": 100_000,
    "hwmon/hwmon3/temp2_label": "junction",
    "hwmon/hwmon3/temp3_label": "mem",
    "hwmon/hwmon3/in0_label": "vddgfx",
    "hwmon/hwmon3/temp2_input": 78_000,
    "hwmon/hwmon3/temp3_input": 72_000,
    "hwmon/hwmon3/freq1_input": 1_801_000_000,
    "hwmon/hwmon3/freq2_input": 1_000_000_000,
    "hwmon/hwmon3/pwm1": 102,
}


def write_amdgpu(
    client_id: int = 7,
    *,
    bus_id: str = "0000:03:00.0",
    vram_kib: int = 2048,
    gtt_kib: int = 64,
    **engines: int,
) -> str:
    """The fdinfo of an amdgpu client, with nanoseconds per engine."""
    lines = [
        "pos:\t0\nflags:\t02100002\nmnt_id:\t27\nino:\t1033\ndrm-driver:\tamdgpu",
        f"drm-client-id:\t{client_id}\ndrm-pdev:\t{bus_id}\npasid:\t32773",
        f"drm-total-vram:\t{vram_kib * 2} KiB\ndrm-shared-vram:\t0\ndrm-resident-vram:\t{vram_kib} KiB",
        f"drm-memory-vram:\t{vram_kib} KiB\ndrm-memory-gtt: \t{gtt_kib} KiB\ndrm-memory-cpu: \t512 KiB",
        *(f"drm-engine-{engine}:\t{time} ns" for engine, time in engines.items()),
    ]
    return "\n".join(lines)


def write_i915(client_id: int = 3, *, bus_id: str = "0000:00:02.0", memory: str = "", **engines: int) -> str:
    """The fdinfo of an i915 client, with nanoseconds per engine."""
    lines = [
        f"pos:\t0\nflags:\t0100002\ndrm-driver:\ti915\ndrm-client-id:\t{client_id}\ndrm-pdev:\t{bus_id}",
        memory or "drm-total-system0:\t9 MiB\ndrm-resident-system0:\t4096 KiB",
        *(f"drm-engine-{engine}:\t{time} ns" for engine, time in engines.items()),
        "drm-engine-capacity-video:\t2",
    ]
    return "\n".join(lines)


def write_xe(
    client_id: int = 5, *, bus_id: str = "0000:03:00.0", ccs: int = 0, rcs: int = 0, total: int = 0
) -> str:
    """The fdinfo of an xe client on a card, with busy cycles of two engine classes and all cycles."""
    return (
        f"drm-driver:\txe\ndrm-client-id:\t{client_id}\ndrm-pdev:\t{bus_id}\n"
        "drm-total-system:\t0\ndrm-resident-system:\t0\ndrm-total-gtt:\t192 KiB\ndrm-resident-gtt:\t192 KiB\n"
        "drm-total-vram0:\t24 MiB\ndrm-shared-vram0:\t16 MiB\ndrm-resident-vram0:\t24 MiB\n"
        f"drm-cycles-rcs:\t{rcs}\ndrm-total-cycles-rcs:\t{total}\n"
        f"drm-cycles-ccs:\t{ccs}\ndrm-total-cycles-ccs:\t{total}\ndrm-engine-capacity-ccs:\t4\n"
    )


@contextmanager
def as_nobody() -> Iterator[None]:
    """Drop root's rights within the context."""
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


@contextmanager
def public_directory() -> Iterator[Path]:
    """A directory that other users may read, unlike pytest's."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)

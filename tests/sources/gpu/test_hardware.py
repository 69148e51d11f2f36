"""GPUs that exist even if no driver answers."""

from __future__ import annotations

from pathlib import Path

from gpu_tracker.sources.gpu.hardware import BusDevice, find_device_files, find_on_bus


def plug(sys: Path, bus_id: str, vendor: str, device_class: str) -> None:
    """Add a device to the bus."""
    directory = sys / "bus/pci/devices" / bus_id
    directory.mkdir(parents=True)
    (directory / "vendor").write_text(f"{vendor}\n")
    (directory / "class").write_text(f"{device_class}\n")


def test_display_devices_of_known_vendors_are_found(tmp_path: Path) -> None:
    """Not their network cards, nor the display of a management controller."""
    plug(tmp_path, "0000:01:00.0", "0x10de", "0x030200")
    plug(tmp_path, "0000:02:00.0", "0x8086", "0x020000")
    plug(tmp_path, "0000:03:00.0", "0x1a03", "0x030000")
    plug(tmp_path, "0000:04:00.0", "0x1002", "0x038000")
    (tmp_path / "bus/pci/devices/0000:05:00.0").mkdir()

    assert find_on_bus(str(tmp_path)) == (
        BusDevice("nvidia", "0000:01:00.0"),
        BusDevice("amd", "0000:04:00.0"),
    )


def test_devices_that_the_nvidia_driver_names_are_found(tmp_path: Path) -> None:
    """A container may see nothing else of them; each counts once."""
    plug(tmp_path, "0000:01:00.0", "0x10de", "0x030200")
    for bus_id in ("0000:01:00.0", "0000:41:00.0"):
        (tmp_path / "driver/nvidia/gpus" / bus_id).mkdir(parents=True)

    assert find_on_bus(str(tmp_path), str(tmp_path)) == (
        BusDevice("nvidia", "0000:01:00.0"),
        BusDevice("nvidia", "0000:41:00.0"),
    )


def test_a_machine_without_a_bus_has_nothing_on_it(tmp_path: Path) -> None:
    """Nor any device files."""
    assert find_on_bus(str(tmp_path)) == ()
    assert find_device_files("nvidia", str(tmp_path / "dev")) == ()


def test_only_files_that_a_job_would_use_count(tmp_path: Path) -> None:
    """NVIDIA's library creates its control file itself, even without a device."""
    for name in ("nvidiactl", "nvidia-uvm", "nvidia0", "nvidia12", "kfd", "null"):
        (tmp_path / name).touch()

    assert find_device_files("nvidia", str(tmp_path)) == (f"{tmp_path}/nvidia0", f"{tmp_path}/nvidia12")
    assert find_device_files("amd", str(tmp_path)) == (f"{tmp_path}/kfd",)
    assert find_device_files("apple", str(tmp_path)) == ()

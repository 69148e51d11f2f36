"""What devices are called, so that they can be told apart."""

from __future__ import annotations

from gpu_tracker.core.model import Event, Gpu, list_gpus, tell_apart

WHOLE = Gpu(0, "GPU-0", "A100", 1)
FIRST, SECOND = (
    Gpu(1, f"MIG-{number}", "A100 MIG", 1, parent_uuid="GPU-1", instance=number) for number in range(2)
)
AMD = Gpu(0, "amd-0", "MI210", 1, vendor="amd")


def test_an_instance_has_the_number_of_its_device_and_its_own() -> None:
    """A whole device has its index alone."""
    assert [gpu.label for gpu in tell_apart((WHOLE, FIRST, SECOND))] == ["0", "1:0", "1:1"]


def test_devices_of_several_vendors_are_called_by_them() -> None:
    """Else two would have the same name."""
    assert [gpu.label for gpu in tell_apart((WHOLE, SECOND, AMD))] == ["nvidia:0", "nvidia:1:1", "amd:0"]
    assert [gpu.label for gpu in list_gpus([Event(0.0, "gpu", gpu=AMD)])] == ["0"]
    assert [gpu.label for gpu in list_gpus([Event(0.0, "gpu", gpu=AMD)], [WHOLE])] == ["nvidia:0", "amd:0"]


def test_they_are_sorted_by_vendor_and_number() -> None:
    """A whole device comes before its instances."""
    whole = Gpu(1, "GPU-1", "A100", 1)
    gpus = sorted((SECOND, FIRST, whole, WHOLE, AMD), key=lambda gpu: gpu.sort_key)

    assert gpus == [AMD, WHOLE, whole, FIRST, SECOND]

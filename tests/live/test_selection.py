"""Which processes `watch` shows, and in which order."""

from __future__ import annotations

import pytest

from gpu_tracker.core.observation import Device, Holder, Observation
from gpu_tracker.live.selection import (
    CPU,
    GPU,
    MEMORY,
    PID,
    RAM,
    SM,
    SORTS,
    USER,
    Selection,
    find_named,
    find_shown,
    is_named,
    list_rows,
    select,
    split_names,
    split_words,
)
from observed import gpu, observation, process, reading, vendor


def machine() -> Observation:
    """Two devices; of the last process nothing is known but its number."""
    processes = (
        process(0, 11, mib=100, percent=30.0),
        process(0, 12, mib=300, percent=10.0),
        process(1, 13, mib=200, percent=20.0),
        process(1, 10, mib=None, percent=None),
    )
    holders = (
        Holder(11, "carla", ("c",), 10, 1.0),
        Holder(12, "anna", ("a",), 30, 2.0),
        Holder(13, "ben", ("b",), 20, 3.0),
    )
    gpus = (gpu(0, bus_id="0000:4f:00.0"), gpu(1))
    return observation(vendor(reading(0), reading(1), processes=processes, gpus=gpus), holders=holders)


def list_pids(selection: Selection) -> list[int]:
    """Of the rows."""
    cores = {11: 0.5, 12: 2.0, 13: 1.0}
    return [row.process.pid for row in list_rows(select(machine(), selection), selection, cores)]


@pytest.mark.parametrize(
    ("sort", "pids", "reversed_pids"),
    [
        (GPU, [12, 11, 13, 10], [13, 10, 12, 11]),
        (MEMORY, [12, 13, 11, 10], [11, 13, 12, 10]),
        (SM, [11, 13, 12, 10], [12, 13, 11, 10]),
        (CPU, [12, 13, 11, 10], [11, 13, 12, 10]),
        (RAM, [12, 13, 11, 10], [11, 13, 12, 10]),
        (PID, [10, 11, 12, 13], [13, 12, 11, 10]),
        (USER, [12, 13, 11, 10], [11, 13, 12, 10]),
    ],
)
def test_processes_are_sorted(sort: str, pids: list[int], reversed_pids: list[int]) -> None:
    """Amounts from the largest down, names and numbers from the first up; what is not known is last either way."""
    assert sort in SORTS
    assert list_pids(Selection(sort=sort)) == pids
    assert list_pids(Selection(sort=sort, is_reversed=True)) == reversed_pids


@pytest.mark.parametrize(
    ("selection", "pids"),
    [
        (Selection(), [12, 11, 13, 10]),
        (Selection(gpus=("1",)), [13, 10]),
        (Selection(gpus=("GPU-0", "1")), [12, 11, 13, 10]),
        (Selection(gpus=("7",)), []),
        (Selection(users=("anna", "ben")), [12, 13]),
        (Selection(pids=(10, 11)), [11, 10]),
        (Selection(gpus=("0",), users=("anna", "ben"), pids=(12, 13)), [12]),
    ],
)
def test_processes_are_filtered(selection: Selection, pids: list[int]) -> None:
    """By any of what is named, and by all kinds together; a process whose user is not known is nobody's."""
    assert list_pids(selection) == pids


def test_devices_stay_when_their_processes_are_filtered() -> None:
    """Only a choice of GPUs leaves out GPUs."""
    assert [device.index for device in select(machine(), Selection(users=("nobody",)))] == [0, 1]
    assert [device.index for device in select(machine(), Selection(gpus=("1",)))] == [1]
    assert Selection().is_everything
    assert not Selection(pids=(1,)).is_everything


def test_a_device_has_several_names() -> None:
    """The index, the UUID, and the bus ID as the kernel and as nvidia-smi write it."""
    first, second = select(machine(), Selection())

    for name in ("0", "nvidia:0", "GPU-0", "0000:4f:00.0", "00000000:4F:00.0", "00000000:4f:00.0"):
        assert [is_named(device, (name,)) for device in (first, second)] == [True, False]
    for name in ("1", "nvidia:1", "GPU-1"):
        assert [is_named(device, (name,)) for device in (first, second)] == [False, True]
    assert not any(is_named(device, ("GPU-", "G", "", "4f:00.0")) for device in (first, second))
    assert find_named((first, second), ("0", "GPU-1")) == (first, second)
    for name in ("2", "x", ""):
        with pytest.raises(ValueError, match="is not valid"):
            find_named((first, second), ("0", name))


def test_a_uuid_may_be_cut_short() -> None:
    """As in CUDA_VISIBLE_DEVICES; that of a split device means its instances."""
    first, _ = select(machine(), Selection())
    long = first.gpu._replace(uuid="GPU-11aabbcc-0000", parent_uuid="GPU-22aabbcc-0000")
    device = Device(long, first.reading, first.details, first.processes, first.reasons)

    assert all(is_named(device, (name,)) for name in ("GPU-11aabbcc", "GPU-1", "GPU-22"))
    assert not is_named(device, ("GPU-33", "GPU-11aabbcc-0000-1"))


def test_names_mean_the_same_wherever_devices_are_shown() -> None:
    """A split device by its address and a model mean its instances, too; what is ambiguous or not there hides nothing else."""
    devices = select(machine(), Selection())
    whole = devices[0].gpu._replace(is_split=True, name="NVIDIA A100-SXM4-40GB")
    part = whole._replace(
        uuid="MIG-0", parent_uuid="GPU-0", instance=0, bus_id="", is_split=False, name="MIG 1g.5gb"
    )
    amd = devices[1].gpu._replace(vendor="amd", ordinal=0)
    shown = [
        Device(gpu, devices[0].reading, devices[0].details, (), devices[0].reasons)
        for gpu in (whole, part, amd)
    ]
    for name in ("0000:4f:00.0", "nvidia a100-sxm4-40gb", "GPU-0", "nvidia:0"):
        assert [device.uuid for device in find_shown(shown, (name, "7"))] == ["GPU-0", "MIG-0"]
    assert [device.uuid for device in find_shown(shown, ("0",))] == ["GPU-0", "MIG-0", "GPU-1"]


def test_a_list_may_have_commas_and_spaces() -> None:
    """As people type them; the names of models have spaces."""
    assert split_names("0, NVIDIA A100-SXM4-40GB,,2 ") == ("0", "NVIDIA A100-SXM4-40GB", "2")
    assert split_names(" , ") == ()
    assert split_words("0, 1,,2 3") == ("0", "1", "2", "3")
    assert split_words(" ") == ()

"""Which devices a job may use: hand-written cases, and PyTorch's own parser for comparison."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import example, given, strategies as st

from gpu_tracker.core.gpu_names import may_mean
from gpu_tracker.core.model import Gpu
from gpu_tracker.sources.gpu.visible import choose_visible, parse_ordinals, resolve_gpus

A, B, C, D = (
    "GPU-a1aaaaaa-0000-0000-0000-000000000001",
    "GPU-a2aaaaaa-0000-0000-0000-000000000002",
    "GPU-b1bbbbbb-0000-0000-0000-000000000003",
    "GPU-c1cccccc-0000-0000-0000-000000000004",
)
NVIDIA = tuple(Gpu(number, uuid, "NVIDIA A100", 1 << 30) for number, uuid in enumerate((A, B, C, D)))
UNEQUAL = (*NVIDIA[:3], NVIDIA[3]._replace(name="NVIDIA T4"))
MIG_1, MIG_2, MIG_3 = (
    "MIG-11111111-0000-0000-0000-000000000001",
    "MIG-12222222-0000-0000-0000-000000000002",
    "MIG-33333333-0000-0000-0000-000000000003",
)
DIVIDED = (
    *NVIDIA[:2],
    Gpu(0, MIG_1, "NVIDIA A100 MIG 1g.5gb", None, parent_uuid=A, instance=0),
    Gpu(0, MIG_2, "NVIDIA A100 MIG 1g.5gb", None, parent_uuid=A, instance=1),
    Gpu(1, MIG_3, "NVIDIA A100 MIG 1g.5gb", None, parent_uuid=B, instance=0),
)
P, Q, R = "GPU-0011223344556677", "GPU-8899aabbccddeeff", "pci-0000:c3:00.0"
AMD = tuple(Gpu(number, uuid, "AMD MI210", 1 << 30, "amd", "amd") for number, uuid in enumerate((P, Q, R)))
ALL = {A, B, C, D}


def choose(gpus: Iterable[Gpu], **environment: str) -> set[str]:
    """Build an environment from short names."""
    names = {
        "cuda": "CUDA_VISIBLE_DEVICES",
        "order": "CUDA_DEVICE_ORDER",
        "nvidia": "NVIDIA_VISIBLE_DEVICES",
        "rocr": "ROCR_VISIBLE_DEVICES",
        "hip": "HIP_VISIBLE_DEVICES",
        "step": "SLURM_STEP_GPUS",
        "job": "SLURM_JOB_GPUS",
        "ordinal": "GPU_DEVICE_ORDINAL",
    }
    return set(choose_visible(tuple(gpus), {names[name]: value for name, value in environment.items()}))


# ---- CUDA.

BY_NUMBER = [
    ("", set()),
    ("0", {A}),
    ("2,1", {B, C}),
    ("0,1,2,3", ALL),
    ("-1", set()),
    ("0,2,-1,1", {A, C}),
    ("0,9,1", {A}),
    ("9", set()),
    ("1,1", set()),
    ("0,1,0", set()),
    ("01,1", set()),
    ("1gpu2,2x", {B, C}),
    ("0x1", {A}),
    ("+1", {B}),
    ("-0", {A}),
    (" 0 , 1", {A, B}),
    ("0,,1", {A}),
    ("0,", {A}),
    (",0", set()),
    ("NoDevFiles", set()),
    ("all", set()),
    ("none", set()),
    ("0 1", {A}),
    ("0;1", {A}),
    ("1.9", {B}),
    ("99999999999999999999999", set()),
]
BY_UUID = [
    (A, {A}),
    (f"{C},{A}", {A, C}),
    ("GPU-b", {C}),
    ("GPU-a", set()),
    ("GPU-a1,GPU-a2", {A, B}),
    ("GPU-", set()),
    ("GPU-zz", set()),
    ("GPU-b,GPU-zz,GPU-c", {C}),
    ("GPU-b,GPU-b", set()),
    ("GPU-b,GPU-b1", set()),
    ("GPU-b,GPU-a,GPU-c", {C}),
    ("gpu-b", set()),
    ("GPU-B1", set()),
    ("GPU-b,", {C}),
    ("GPU-b,,GPU-c", {C}),
]
MIXED = [
    ("0,GPU-b", {A}),
    ("GPU-b,0", {C}),
    ("GPU-b,MIG-1", {C}),
    (" GPU-b", set()),
    ("GPU-b, GPU-c", {C}),
]


@pytest.mark.parametrize(("text", "visible"), [*BY_NUMBER, *BY_UUID, *MIXED])
def test_cuda_lists(text: str, visible: set[str]) -> None:
    """The first invalid entry ends the list, a repeated one empties it."""
    assert choose(NVIDIA, cuda=text) == visible


@pytest.mark.parametrize("text", ["GPU-a,", "GPU-a,G", "GPU-a,GPU", "GPU-a,0"])
def test_an_entry_after_a_uuid_must_be_a_uuid(text: str) -> None:
    """Anything else ends the list."""
    assert choose(NVIDIA[:1], cuda=text) == {A}


def test_without_a_variable_everything_is_visible() -> None:
    """Of every vendor; there may be none."""
    assert choose((*NVIDIA, *AMD)) == {*ALL, P, Q, R}
    assert choose(()) == set()
    assert choose((), cuda="0", nvidia="all", rocr="0") == set()


def test_a_device_that_could_not_be_opened_has_its_number() -> None:
    """Its name is not known, so it does not make the numbers ambiguous."""
    gpus = [Gpu(number, f"GPU-{number}", "A100" if number else "", None) for number in range(3)]

    assert choose_visible(gpus, {"CUDA_VISIBLE_DEVICES": "1"}) == {gpus[1].uuid}
    assert choose_visible(gpus, {}) == {one.uuid for one in gpus}


def test_numbers_of_unequal_devices_are_ambiguous_without_bus_order() -> None:
    """CUDA puts the fastest first; only the bus order is known to others."""
    assert choose(UNEQUAL, cuda="3") == ALL
    assert choose(UNEQUAL, cuda="3", order="FASTEST_FIRST") == ALL
    assert choose(UNEQUAL, cuda="3", order="PCI_BUS_ID") == {D}
    assert choose(UNEQUAL, cuda="-1") == set()
    assert choose(UNEQUAL, cuda="") == set()
    assert choose(UNEQUAL, cuda="GPU-c") == {D}


@pytest.mark.parametrize(
    ("text", "visible"),
    [
        ("0", {A, MIG_1, MIG_2}),
        ("1", {B, MIG_3}),
        (A, {A, MIG_1, MIG_2}),
        (MIG_1, {MIG_1}),
        ("MIG-3", {MIG_3}),
        ("MIG-1", set()),
        (f"{MIG_1},{MIG_3}", {MIG_1, MIG_3}),
        (f"{MIG_1},0", {MIG_1}),
        (f"MIG-{B}/3/0", {B, MIG_3}),
        ("MIG-GPU-nobody/3/0", set()),
    ],
)
def test_instances(text: str, visible: set[str]) -> None:
    """By their own UUID, by their device's, or in the old style by their position on it."""
    assert choose(DIVIDED, cuda=text) == visible


def test_instances_listed_by_their_old_names() -> None:
    """The old style is then a name like any other."""
    legacy = f"MIG-{A}/7/0"
    gpus = (
        *NVIDIA[:2],
        Gpu(0, legacy, "MIG", None, parent_uuid=A),
        Gpu(1, f"MIG-{A}/8/0", "MIG", None, parent_uuid=A),
    )

    assert choose(gpus, cuda=legacy) == {legacy}


def test_old_names_of_instances_with_uuids() -> None:
    """CUDA and every option accept them, too: position on the device, not number."""
    named = tuple(
        gpu._replace(old_uuid=f"MIG-{gpu.parent_uuid}/{7 + (gpu.instance or 0)}/0")
        if gpu.parent_uuid
        else gpu
        for gpu in DIVIDED
    )
    first, second = f"MIG-{A}/7/0", f"MIG-{A}/8/0"

    assert choose(named, cuda=second) == {MIG_2}
    assert choose(named, cuda=f"{second},{first}") == {MIG_1, MIG_2}
    assert choose(named, cuda=f"{second},{second}") == set()
    assert choose(named, cuda=f"MIG-{A}/9/0,{first}") == set()
    # A job is given the instances without their device.
    assert choose(named[2:], cuda=first) == choose(DIVIDED[2:], cuda=MIG_1) == {MIG_1}
    assert choose(DIVIDED[2:], cuda=first) == {MIG_1, MIG_2}
    assert resolve_gpus([second.lower()], named) == (MIG_2,)
    assert [gpu.uuid for gpu in named if may_mean(gpu, second)] == [MIG_2]


def test_an_instance_without_listed_instances() -> None:
    """Its device is unknown, so none is ruled out."""
    assert choose(NVIDIA, cuda=MIG_1) == ALL
    assert choose(NVIDIA, cuda=f"MIG-{B}/3/0") == {B}


# ---- Containers.


@pytest.mark.parametrize(
    ("nvidia", "cuda", "visible"),
    [
        ("all", None, ALL),
        ("", None, ALL),
        ("void", None, ALL),
        ("none", None, set()),
        ("none", "0", set()),
        ("2", None, {C}),
        ("3,2", None, {C, D}),
        (f"{C},{D}", None, {C, D}),
        ("2,3", "0", {C}),
        ("3,2", "0", {C}),
        ("2,3", "1", {D}),
        (f"{C},{D}", C, {C}),
        ("7", None, ALL),
        ("0:0", None, ALL),
        ("GPU-somebody", None, ALL),
        ("1", "1", {B}),
        ("1", "0", {B}),
    ],
)
def test_devices_injected_into_a_container(nvidia: str, cuda: str | None, visible: set[str]) -> None:
    """CUDA counts within them; an unknown number means that we are inside the container."""
    environment = {"nvidia": nvidia} if cuda is None else {"nvidia": nvidia, "cuda": cuda}

    assert choose(NVIDIA, **environment) == visible


def test_in_a_container_devices_are_renumbered() -> None:
    """Only the second and fourth of the machine are there."""
    inside = (NVIDIA[1]._replace(ordinal=0), NVIDIA[3]._replace(ordinal=1))

    assert choose(inside, nvidia="1,3") == {B, D}
    assert choose(inside, nvidia="1,3", cuda="1") == {D}
    assert choose(inside, nvidia=f"{B},{D}", cuda="0") == {B}


# ---- AMD.


@pytest.mark.parametrize(
    ("environment", "visible"),
    [
        ({"rocr": "1"}, {Q}),
        ({"rocr": "1,2"}, {Q, R}),
        ({"rocr": ""}, set()),
        ({"rocr": "GPU-8899aabbccddeeff"}, {Q}),
        ({"rocr": "GPU-8899AABBCCDDEEFF,0"}, {P, Q}),
        ({"rocr": "0,7,1"}, {P}),
        ({"rocr": "GPU-"}, set()),
        ({"rocr": "2,1", "hip": "0"}, {R}),
        ({"rocr": "2,1", "hip": "1"}, {Q}),
        ({"rocr": "2,1", "hip": "2"}, set()),
        ({"rocr": "2,1", "cuda": "0"}, {R}),
        ({"hip": "2"}, {R}),
        ({"hip": "-1"}, set()),
        ({"cuda": "0"}, {P}),
        ({"cuda": "0", "hip": "1"}, {Q}),
    ],
)
def test_rocm_first_and_hip_within(environment: dict[str, str], visible: set[str]) -> None:
    """HIP numbers the devices that ROCm has left, in ROCm's order, and uses CUDA's variable, too."""
    assert choose(AMD, **environment) == visible


def test_vendors_ignore_each_others_variables() -> None:
    """Except for CUDA's, which HIP uses."""
    assert choose((*NVIDIA, *AMD), rocr="0") == {*ALL, P}
    assert choose((*NVIDIA, *AMD), nvidia="0") == {A, P, Q, R}
    assert choose((*NVIDIA, *AMD), cuda="1") == {B, Q}
    intel = Gpu(0, "pci-0000:00:02.0", "Intel", None, "intel", "intel")
    assert choose((intel, NVIDIA[0]), cuda="") == {intel.uuid}


# ---- Schedulers.


@pytest.mark.parametrize(
    ("environment", "visible"),
    [
        ({"job": "2"}, {C}),
        ({"job": "0,3"}, {A, D}),
        ({"job": "1-3"}, {B, C, D}),
        ({"job": "0-1,3"}, {A, B, D}),
        ({"job": "0,1", "step": "1"}, {B}),
        ({"ordinal": "3"}, {D}),
        ({"job": "0", "ordinal": "3"}, {A}),
        ({"job": "4"}, ALL),
        ({"job": "2,6"}, ALL),
        ({"job": ""}, ALL),
        ({"job": "gpu:2"}, ALL),
        ({"job": "2", "cuda": "1"}, {B}),
        ({"job": "2", "cuda": ""}, set()),
        ({"job": "2", "nvidia": "2,3"}, {C}),
    ],
)
def test_devices_allocated_by_slurm(environment: dict[str, str], visible: set[str]) -> None:
    """If its number is not among ours, a cgroup has hidden all but the job's devices."""
    assert choose(NVIDIA, **environment) == visible


def test_slurm_allocates_devices_of_any_single_vendor() -> None:
    """With several vendors its numbers are ambiguous."""
    assert choose(AMD, job="1") == {Q}
    assert choose((*NVIDIA, *AMD), job="1") == {*ALL, P, Q, R}


# ---- Comparison with PyTorch.


class Torch:
    """PyTorch's parser, as far as it works without a device."""

    def __init__(self, torch: Any) -> None:
        self._cuda = torch.cuda

    def parse(self, text: str) -> list[int] | list[str]:
        """Parsed entries, before they are matched with devices."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("CUDA_VISIBLE_DEVICES", text)
            parsed: list[int] | list[str] = self._cuda._parse_visible_devices()
            return parsed

    def choose(self, text: str, uuids: list[str]) -> set[str]:
        """The devices; as when PyTorch counts them, numbers are cut at the first that is too high."""
        entries = self.parse(text)
        if entries and isinstance(entries[0], str):
            ordinals = self._cuda._transform_uuid_to_ordinals(entries, uuids)
        else:
            ordinals = []
            for entry in entries:
                assert isinstance(entry, int)
                if entry >= len(uuids):
                    break
                ordinals.append(entry)
        return {uuids[ordinal] for ordinal in ordinals}


@pytest.fixture(scope="module")
def torch() -> Torch:
    """PyTorch, if it is installed, in any build."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns if numpy is missing
        module = pytest.importorskip("torch", reason="PyTorch, the second opinion, is not installed")
    return Torch(module)


def cut_at_invalid(torch: Torch, text: str) -> str:
    """The list up to the first entry that is a valid number or name, but not of a device.

    Here PyTorch differs from CUDA's documentation: it looks for repeated entries in the whole list, so that
    `0,9,0` is nothing at all; by the documentation the 9 ends the list, and the second 0 is not read.
    """
    kept: list[str] = []
    for entry in text.split(","):
        if torch.parse(entry) and not torch.choose(entry, [A, B, C, D]):
            break
        kept.append(entry)
    return ",".join(kept) if kept else "-1"


ENTRIES = st.one_of(
    st.integers(-2, 6).map(str),
    st.sampled_from(["", " 1", "2 ", "+1", "-0", "01", "1gpu2", "2x", "x2", "0x1", "1.5", "1-2", "nil", "٣"]),
    st.sampled_from([A, B, C, D, "GPU-a", "GPU-a1", "GPU-b", "GPU-c", "GPU-", "GPU-zz", " GPU-b", "gpu-b"]),
    st.sampled_from([MIG_1, "MIG-"]),
    st.text(alphabet="0123+- xGPU-ab", max_size=6),
)


@given(st.lists(ENTRIES, min_size=1, max_size=6).map(",".join))
@example("0,9,0")
@example("2,1,0,2")
@example("GPU-b,GPU-zz,GPU-zz")
def test_pytorch_agrees_on_lists_of_any_kind(torch: Torch, text: str) -> None:
    """Except where it crashes (a single `+`, digits of other scripts) and where noted above."""
    try:
        expected = torch.choose(cut_at_invalid(torch, text), [A, B, C, D])
    except ValueError:
        assert not is_plain(text)
        return
    if text.startswith("MIG-"):
        return  # it leaves instances to CUDA
    if "٣" in text:
        return  # C accepts ASCII digits only

    assert choose(NVIDIA, cuda=text) == expected
    assert choose(UNEQUAL, cuda=text, order="PCI_BUS_ID") == expected


def is_plain(text: str) -> bool:
    """Whether no entry is a sign without a number."""
    return not any(entry.strip()[:1] in {"+", "-"} for entry in text.split(","))


@given(
    st.lists(
        st.sampled_from([MIG_1, MIG_2, MIG_3, "MIG-1", "MIG-11", "MIG-3", "MIG-x", "0"]),
        min_size=1,
        max_size=5,
    )
)
def test_pytorch_agrees_on_prefixes_of_instances(torch: Torch, entries: list[str]) -> None:
    """Instances follow the same rules as devices."""
    # Up to the first that matches none or several, for the reason noted above.
    n_read = next((number for number, entry in enumerate(entries, 1) if entry in {"MIG-1", "MIG-x"}), None)
    text = ",".join(["MIG-3", *entries[:n_read]])
    parsed = torch.parse(text)
    instances = [MIG_1, MIG_2, MIG_3]
    ordinals = torch._cuda._transform_uuid_to_ordinals(parsed, instances)

    assert choose(DIVIDED, cuda=text) == {instances[ordinal] for ordinal in ordinals}


@pytest.mark.parametrize(("text", "visible"), [*BY_NUMBER, *BY_UUID, *MIXED])
def test_pytorch_agrees_on_the_vectors(torch: Torch, text: str, visible: set[str]) -> None:
    """So the table above is confirmed independently."""
    assert torch.choose(cut_at_invalid(torch, text), [A, B, C, D]) == visible


def test_where_pytorch_differs_from_the_documentation(torch: Torch) -> None:
    """A repeated entry behind the one that ends the list."""
    assert torch.choose("0,9,0", [A, B, C, D]) == set()
    assert choose(NVIDIA, cuda="0,9,0") == {A}
    assert torch.choose("GPU-b,GPU-zz,GPU-zz", [A, B, C, D]) == set()
    assert choose(NVIDIA, cuda="GPU-b,GPU-zz,GPU-zz") == {C}


# ---- Arbitrary input.


@given(st.text(max_size=60), st.sampled_from(["cuda", "nvidia", "rocr", "hip", "step", "job", "ordinal"]))
def test_any_text_is_accepted(text: str, name: str) -> None:
    """The result is always a subset of the devices."""
    for gpus in (NVIDIA, UNEQUAL, DIVIDED, AMD, (*DIVIDED, *AMD)):
        assert choose(gpus, **{name: text}) <= {gpu.uuid for gpu in gpus}


@given(st.lists(st.integers(0, 10**30), max_size=6))
def test_numbers_are_read_back(numbers: list[int]) -> None:
    """Up to a size that no machine reaches."""
    assert parse_ordinals(",".join(map(str, numbers))) == tuple(min(number, 10**9) for number in numbers)


# ---- Devices named by a user.


@pytest.mark.parametrize(
    ("names", "uuids"),
    [
        ([A], (A,)),
        ([A.upper()], (A,)),
        (["GPU-b"], (C,)),
        (["gpu-A2"], (B,)),
        (["2", "0"], (C, A)),
        (["0", A, "GPU-a1"], (A,)),
        (["nvidia:3"], (D,)),
        (["nvidia a100"], (A, B, C)),
        (["NVIDIA T4", "1"], (D, B)),
        ([" 1 "], (B,)),
        ([], ()),
    ],
)
def test_a_user_may_name_devices_in_many_ways(names: list[str], uuids: tuple[str, ...]) -> None:
    """Each device once, in the order of the names."""
    assert resolve_gpus(names, UNEQUAL) == uuids


def test_numbers_where_vendors_are_mixed() -> None:
    """The vendor in front makes them unambiguous; without it they are if only one vendor has that number."""
    gpus = (*NVIDIA, *AMD)

    assert resolve_gpus(["amd:0", "nvidia:0", "3"], gpus) == (P, A, D)
    with pytest.raises(ValueError, match=r"^GPU 0 is ambiguous: .* Write amd:0 or nvidia:0\.$"):
        resolve_gpus(["0"], gpus)


def test_instances_are_named_by_uuid_or_by_both_numbers() -> None:
    """They are numbered per device, so one number means a whole one."""
    assert resolve_gpus(["0", "MIG-3"], DIVIDED) == (A, MIG_3)
    assert resolve_gpus(["0:1", "nvidia:1:0"], DIVIDED) == (MIG_2, MIG_3)


def test_the_number_of_a_split_device_means_its_instances() -> None:
    """NVML lists them in its place."""
    instances = DIVIDED[2:]

    assert resolve_gpus(["0"], instances) == resolve_gpus(["nvidia:0"], instances) == (MIG_1, MIG_2)
    with pytest.raises(ValueError, match="GPU UUID of 2 is not valid"):
        resolve_gpus(["2"], instances)


@pytest.mark.parametrize("name", ["", "GPU-zz", "4", "-1", "amd:0", "nvidia:", ":0", "A100", "0x0", "²"])
def test_an_unknown_name_is_refused_with_the_available_ones(name: str) -> None:
    """In the words that users of the tool know."""
    with pytest.raises(ValueError) as caught:
        resolve_gpus([A, name], tuple(reversed(NVIDIA)))

    assert str(caught.value) == f"GPU UUID of {name} is not valid. Available UUIDs are: {A}, {B}, {C}, {D}"


def test_an_ambiguous_prefix_is_refused_with_all_matches() -> None:
    """So that the user can add a letter."""
    with pytest.raises(ValueError) as caught:
        resolve_gpus(["GPU-a"], NVIDIA)

    assert str(caught.value) == f"GPU UUID of GPU-a is ambiguous. It is the beginning of: {A}, {B}"


def test_every_way_of_naming_a_device_that_is_split_means_its_instances() -> None:
    """Its address on the bus, as the kernel or nvidia-smi writes it, its UUID or the beginning of that, its number."""
    split = (
        NVIDIA[0]._replace(is_split=True, bus_id="0000:4f:00.0"),
        *(one for one in DIVIDED if one.parent_uuid == A),
        NVIDIA[2]._replace(bus_id="0001:e1:00.0"),
    )
    for name in ("0", "nvidia:0", A, A[:9], "0000:4f:00.0", "00000000:4F:00.0"):
        assert resolve_gpus([name], split) == (MIG_1, MIG_2)
        assert [gpu.uuid for gpu in split if may_mean(gpu, name)] == [A, MIG_1, MIG_2][
            : 1 if ":00" in name else 3
        ]
    for name in ("0", A, A[:9], f"MIG-{A}/7/0"):
        assert choose(split, cuda=name) == {MIG_1, MIG_2}
    assert choose(split) == {MIG_1, MIG_2, C}
    assert choose(split, cuda="1", order="PCI_BUS_ID") == {C}
    assert resolve_gpus([A], split[1:]) == (MIG_1, MIG_2)
    assert resolve_gpus(["00000001:E1:00.0", "NVIDIA A100"], split) == (C, MIG_1, MIG_2)
    with pytest.raises(ValueError, match="is ambiguous"):
        resolve_gpus(["MIG-1"], split)


@pytest.mark.parametrize("name", ["0000:50:00.0", "4f:00.0", ":", "GPU-"])
def test_a_part_of_an_address_or_of_all_uuids_names_nothing(name: str) -> None:
    """It may be anywhere."""
    gpus = (NVIDIA[0]._replace(bus_id="0000:4f:00.0"), NVIDIA[1])

    assert not any(may_mean(gpu, name) for gpu in gpus)
    with pytest.raises(ValueError, match="is not valid"):
        resolve_gpus([name], gpus)

"""What cards are sold as, by their numbers on the PCI bus: from the lists that a system has, else from a few well-known ones."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_AMD = "1002"
# libdrm's list of AMD's cards, which knows revisions, and the list of all PCI devices where distributions have it.
_AMD_LIST = "libdrm/amdgpu.ids"
_PCI_LISTS = ("misc/pci.ids", "hwdata/pci.ids")
_LONGEST_LIST_BYTES = 2**23
_BRANDS = {_AMD: "AMD", "8086": "Intel"}
# Vendor and device. Where neither list is, as in most containers.
_KNOWN = {
    (_AMD, "738c"): "AMD Instinct MI100",
    (_AMD, "7408"): "AMD Instinct MI250X",
    (_AMD, "740c"): "AMD Instinct MI250X/MI250",
    (_AMD, "740f"): "AMD Instinct MI210",
    (_AMD, "74a0"): "AMD Instinct MI300A",
    (_AMD, "74a1"): "AMD Instinct MI300X",
    (_AMD, "74a5"): "AMD Instinct MI325X",
    (_AMD, "73bf"): "AMD Radeon RX 6800/6800 XT/6900 XT",
    (_AMD, "744c"): "AMD Radeon RX 7900 XT/7900 XTX",
    (_AMD, "7480"): "AMD Radeon RX 7600",
    ("8086", "0bd5"): "Intel Data Center GPU Max 1550",
    ("8086", "0bda"): "Intel Data Center GPU Max 1100",
    ("8086", "56a0"): "Intel Arc A770",
    ("8086", "56a1"): "Intel Arc A750",
    ("8086", "56a5"): "Intel Arc A380",
    ("8086", "56c0"): "Intel Data Center GPU Flex 170",
    ("8086", "56c1"): "Intel Data Center GPU Flex 140",
    ("8086", "e20b"): "Intel Arc B580",
    ("8086", "e20c"): "Intel Arc B570",
}


def find_product_name(share: str, vendor: str, device: str, revision: str = "") -> str | None:
    """The name of a card by its numbers, such as 0x1002, 0x73bf and 0xc0; None if nobody knows it."""
    vendor, device, revision = (number.lower().removeprefix("0x") for number in (vendor, device, revision))
    if vendor == _AMD and revision:
        for line in _read_lines(f"{share}/{_AMD_LIST}"):
            if line.lower().startswith(f"{device},"):
                _, second, name = (*map(str.strip, line.split(",", 2)), "", "")[:3]
                if second.lower().zfill(2) == revision.zfill(2) and name:
                    return name
    if (vendor, device) in _KNOWN:
        return _KNOWN[vendor, device]
    for path in _PCI_LISTS:
        found = _find_in_pci_list(_read_lines(f"{share}/{path}"), vendor, device)
        if found:
            return f"{_BRANDS.get(vendor, '')} {found}".strip()
    return None


def _find_in_pci_list(lines: Iterable[str], vendor: str, device: str) -> str | None:
    """A vendor's line begins with its number, those of its devices below it with a tab."""
    is_in_block = False
    for line in lines:
        if line[:1] not in ("\t", "#", ""):
            is_in_block = line.startswith(f"{vendor} ")
        elif is_in_block and line.startswith(f"\t{device} "):
            chip = line[1 + len(device) :].strip()
            _, _, sold_as = chip.partition("[")  # the chip, and in brackets what it is sold as
            return sold_as.partition("]")[0] or chip
    return None


def _read_lines(path: str) -> Iterator[str]:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            yield from file.read(_LONGEST_LIST_BYTES).split("\n")
    except OSError:
        return  # not on this system

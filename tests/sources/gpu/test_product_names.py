"""What cards are sold as."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpu_tracker.sources.gpu.product_names import find_product_name

AMD_LIST = "# comment\n1.0.0\n73BF,\tC0,\tAMD Radeon RX 6900 XT\n73BF,\tC3,\tAMD Radeon RX 6800\n740F\n740F,\t2\n740F,\t02,\t\n"
PCI_LIST = """# comment
0001  Somebody
\t73bf  Not this one
1002  Advanced Micro Devices, Inc. [AMD/ATI]
\t# comment
\t1681  Rembrandt [Radeon 680M]
\t\t1043 1e22  Zenbook
\t9999  Bare
1003  ULSI Systems
\t1681  Not this one either
8086  Intel Corporation
\t4680  AlderLake-S GT1 [UHD Graphics 770]
"""


@pytest.fixture
def share(tmp_path: Path) -> str:
    """A system with both lists."""
    for path, text in (("libdrm/amdgpu.ids", AMD_LIST), ("misc/pci.ids", PCI_LIST)):
        (tmp_path / path).parent.mkdir()
        (tmp_path / path).write_text(text)
    return str(tmp_path)


@pytest.mark.parametrize(
    ("vendor", "device", "revision", "name"),
    [
        ("0x1002", "0x73bf", "0xc3", "AMD Radeon RX 6800"),
        ("0x1002", "0x73bf", "0xee", "AMD Radeon RX 6800/6800 XT/6900 XT"),
        ("0x1002", "0x73bf", "", "AMD Radeon RX 6800/6800 XT/6900 XT"),
        ("0x1002", "0x740f", "0x02", "AMD Instinct MI210"),
        ("0x1002", "0x1681", "0xd1", "AMD Radeon 680M"),
        ("0x1002", "0x9999", "0x00", "AMD Bare"),
        ("0x8086", "0x4680", "", "Intel UHD Graphics 770"),
        ("0x8086", "0x56A0", "", "Intel Arc A770"),
        ("0x8086", "0xffff", "", None),
        ("0x1d17", "0x3d00", "", None),
    ],
)
def test_a_card_by_its_numbers(share: str, vendor: str, device: str, revision: str, name: str | None) -> None:
    """The list with revisions first, then what is well known, then the list of all devices."""
    assert find_product_name(share, vendor, device, revision) == name


def test_without_lists_the_well_known_ones_remain(tmp_path: Path) -> None:
    """As in most containers; also if a list is not text."""
    assert find_product_name(str(tmp_path), "0x1002", "0x74a1", "0x00") == "AMD Instinct MI300X"
    (tmp_path / "misc").mkdir()
    (tmp_path / "misc/pci.ids").write_bytes(b"\xff\x001002 \n\t1681\n")
    assert find_product_name(str(tmp_path), "0x1002", "0x1681", "0x00") is None

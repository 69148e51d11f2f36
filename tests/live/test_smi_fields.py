"""Fields by nvidia-smi's names and in its format."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gpu_tracker.core.errors import UsageError
from gpu_tracker.core.observation import Holder, list_gpus
from gpu_tracker.live.smi_fields import (
    Field,
    Row,
    find_fields,
    list_fields,
    render_csv,
    render_heading,
    render_json,
)
from gpu_tracker.live.smi_names import GPU_FIELDS, PROCESS_FIELDS
from observed import MIB, observation, process, reading, vendor


def row(**fields: Any) -> Row:
    """A row about the first device and its first process."""
    seen = observation(
        vendor(
            reading(**fields),
            processes=(process(),),
            details={"GPU-0": {"pstate": "P0", "fan.speed": 30.0, "power.limit": 300.0}},
        )
    )
    (device,) = list_gpus(seen)
    return Row(seen, 1, device, device.processes[0])


def ask(names: str, *, has_units: bool = True, **fields: Any) -> str:
    """One line of CSV."""
    return render_csv(row(**fields), find_fields(names, GPU_FIELDS), has_units=has_units)


def test_only_details_need_another_reading() -> None:
    """The usual figures do not."""
    assert [field.needs_details for field in find_fields("memory.used,pstate", GPU_FIELDS)] == [False, True]


def test_headings_have_units_and_the_long_names() -> None:
    """As in nvidia-smi, whichever alias the user wrote."""
    names = "index, gpu_name,memory.used,utilization.gpu,temperature,clocks.sm,power.draw"

    assert render_heading(find_fields(names, GPU_FIELDS)) == (
        "index, name, memory.used [MiB], utilization.gpu [%], temperature.gpu, clocks.current.sm [MHz], "
        "power.draw [W]"
    )


def test_cells_have_nvidia_smis_units() -> None:
    """Whole MiB and percent, watts to the hundredth, temperatures bare."""
    names = "index,memory.total,memory.used,memory.free,utilization.gpu,temperature.gpu,power.draw,pstate,fan.speed"

    assert ask(names) == "0, 40960 MiB, 10240 MiB, 29696 MiB, 55 %, 61, 250.40 W, P0, 30 %"
    assert ask(names, has_units=False) == "0, 40960, 10240, 29696, 55, 61, 250.40, P0, 30"


def test_an_unknown_value_is_not_available() -> None:
    """With and without units."""
    assert ask("utilization.gpu,serial", utilization_percent=None) == "[N/A], [N/A]"
    assert ask("utilization.gpu", utilization_percent=None, has_units=False) == "[N/A]"


def test_throttling_reasons_are_words() -> None:
    """None, two, or not known."""
    assert ask("limits", limits=()) == "none"
    assert ask("limits", limits=("power", "heat")) == "power heat"
    assert ask("limits", limits=None) == "[N/A]"


def test_json_has_base_units_and_null() -> None:
    """Bytes instead of MiB."""
    fields = find_fields("memory.used,power.draw,temperature,serial,timestamp", GPU_FIELDS)
    shown = json.loads(render_json(row(), fields))

    assert shown["memory.used"] == 10240 * MIB
    assert (shown["power.draw"], shown["temperature.gpu"], shown["serial"]) == (250.4, 61.0, None)
    assert shown["timestamp"][4] == "/"


def test_processes_have_fields_of_their_own() -> None:
    """nvidia-smi's, and ours."""
    fields = find_fields("gpu_uuid,pid,process_name,used_memory,utilization.sm,user,command", PROCESS_FIELDS)

    assert render_csv(row(), fields, has_units=True) == (
        "GPU-0, 4242, python, 1234 MiB, 50 %, anna, python train.py"
    )


def test_a_cell_stays_one_cell() -> None:
    """Commas and control characters are replaced."""
    here = row()
    assert here.process is not None
    hostile = here.process._replace(holder=Holder(4242, "eve", ("a,b", "c\nd\x1b[2J")))
    fields = find_fields("command,process_name", PROCESS_FIELDS)

    assert render_csv(here._replace(process=hostile), fields, has_units=True) == "a?b c?d?[2J, a?b"


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("memory.usd", "Did you mean memory.used or"),
        ("MEMORY.USD", "Did you mean memory.used or"),
        ("ecc", "ecc.mode.current"),
        ("qqqq", "`--help-fields` lists them."),
        ("", "`--help-fields` lists them."),
    ],
)
def test_an_unknown_field_is_refused_with_similar_ones(name: str, hint: str) -> None:
    """In one sentence."""
    with pytest.raises(UsageError, match="Unknown field") as caught:
        find_fields(name, GPU_FIELDS)

    assert hint in str(caught.value)


def test_every_name_of_nvidia_smi_is_known() -> None:
    """Those that its version 550 lists, in its own spelling or in small letters."""
    names = Path(__file__).with_name("nvidia_smi_550.txt").read_text().split()
    fields = find_fields(",".join(names), GPU_FIELDS)

    assert len(names) == len(set(names)) == 178
    assert all(name in (field.name, *field.aliases) for name, field in zip(names, fields, strict=True))
    assert find_fields(",".join(names).lower(), GPU_FIELDS) == fields


def test_every_name_of_a_process_is_known() -> None:
    """Those that nvidia-smi 550 lists; each heads its own column."""
    names = (
        "timestamp gpu_name gpu_bus_id gpu_serial gpu_uuid pid process_name name used_gpu_memory used_memory"
    )

    assert [field.name for field in find_fields(names.replace(" ", ","), PROCESS_FIELDS)][3:5] == [
        "gpu_serial",
        "gpu_uuid",
    ]
    assert find_fields("pcie.link.gen.gpucurrent", GPU_FIELDS)[0].heading == "pcie.link.gen.gpucurrent"


@pytest.mark.parametrize(
    ("bus_id", "address"),
    [
        ("0000:4f:00.0", "0x0000, 0x4F, 0x00"),
        ("10000:e1:1f.0", "0x10000, 0xE1, 0x1F"),
        ("", ", ".join(["[N/A]"] * 3)),
    ],
)
def test_an_address_has_three_parts(bus_id: str, address: str) -> None:
    """Of any vendor; none without a bus."""
    seen = observation(vendor(reading()))
    (device,) = list_gpus(seen)
    device.gpu = device.gpu._replace(bus_id=bus_id)

    assert (
        render_csv(
            Row(seen, 1, device), find_fields("pci.domain,pci.bus,pci.device", GPU_FIELDS), has_units=True
        )
        == address
    )


@pytest.mark.parametrize("fields", [GPU_FIELDS, PROCESS_FIELDS])
def test_every_field_is_listed_once_and_can_be_queried(fields: tuple[Field, ...]) -> None:
    """No two fields share a name."""
    names = [name for field in fields for name in (field.name, *field.aliases)]

    assert len(names) == len(set(names))
    assert list_fields(fields).count("\n") == len(fields)
    assert render_csv(row(), find_fields(",".join(names), fields), has_units=True)

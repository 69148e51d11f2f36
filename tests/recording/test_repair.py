"""One bad value does not cost the whole recording."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from builders import header, totals
from gpu_tracker.core.errors import RecordingError
from gpu_tracker.core.model import End, Identity
from gpu_tracker.recording.glance import glance
from gpu_tracker.recording.reader import load
from gpu_tracker.recording.repair import repair_header
from gpu_tracker.recording.schema import encode_end, encode_header
from gpu_tracker.reports.build import build

WHOLE = header()._replace(identity=Identity(name="night", labels=(("seed", "7"),), rank=3, ranks=8))


def changed(**values: Any) -> dict[str, Any]:
    """The data of a header, with other values."""
    return {**encode_header(WHOLE), **values}


def with_identity(**values: Any) -> dict[str, Any]:
    """The same, in its identity."""
    return changed(identity={**encode_header(WHOLE)["identity"], **values})


def test_a_valid_header_is_read_as_it_is() -> None:
    """Without a word."""
    assert repair_header(changed()) == (WHOLE, ())


def test_unknown_keys_are_ignored() -> None:
    """A later version may write more."""
    data = with_identity(colour="red")
    data |= {"mood": [1], "allocation": {**data["allocation"], "moons": 2}}

    assert repair_header(data) == (WHOLE, ())


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("rank", value) for value in (-1, "3", 1.5, True, 2**24, 2**70)),
        *(("labels", value) for value in ([1], {"a": 1}, "x")),
        *(("name", 7), ("ranks", 0), ("ranks", 2**62), ("job", [])),
    ],
)
def test_a_bad_value_of_the_identity_is_dropped_and_named(name: str, value: Any) -> None:
    """All others stay."""
    default: Any = () if name == "labels" else None
    expected = WHOLE._replace(identity=WHOLE.identity._replace(**{name: default}))

    assert repair_header(with_identity(**{name: value})) == (
        expected,
        (f"The header's {name} is not valid and was ignored.",),
    )


@pytest.mark.parametrize("cores", [-1, 0, "2", None, float("nan"), float("inf"), True])
def test_a_bad_number_of_cores_is_replaced_by_what_the_job_may_use(cores: Any) -> None:
    """It divides every share."""
    found, notes = repair_header(changed(n_expected_cores=cores))

    assert found.n_expected_cores == WHOLE.allocation.cores
    assert notes == ("The header's n_expected_cores is not valid and was ignored.",)


@pytest.mark.parametrize("uuids", ["GPU-1", [1], 5])
def test_bad_names_of_gpus_are_dropped(uuids: Any) -> None:
    """As if the user had named none."""
    found, notes = repair_header(changed(gpu_uuids=uuids))

    assert found.gpu_uuids is None
    assert len(notes) == 1


def test_an_identity_that_is_none_is_ignored() -> None:
    """And a missing one."""
    for data in (changed(identity=[]), {key: value for key, value in changed().items() if key != "identity"}):
        assert repair_header(data)[0].identity == Identity()


def test_report_and_list_say_what_was_ignored(tmp_path: Path) -> None:
    """The recording can be used."""
    path = tmp_path / "x.jsonl"
    lines = [
        {"header": with_identity(rank=-1, colour="red")},
        {"end": encode_end(End("exited", 0, totals(), 0.1, 9))},
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))

    for recording in (load(path), glance(str(path))):
        assert "The header's rank is not valid and was ignored." in build(recording).notes
    path.write_text(json.dumps({"header": changed(pid="x")}) + "\n")
    with pytest.raises(RecordingError):
        load(path)

"""Every setting is checked before anything starts, with one clear sentence."""

from __future__ import annotations

import math
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from gpu_tracker.core.config import (
    Settings,
    check,
    check_gpu_uuids,
    check_gpu_vendors,
    check_join,
    check_labels,
    check_process_id,
    choose_gpu_vendors,
    list_process_sources,
)


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (
            {"sleep_time": 0.005},
            "Sleep time of 0.005 is invalid. Must be at least 0.01 seconds.",
        ),
        ({"sleep_time": -1}, "Sleep time of -1 is invalid. Must be at least 0.01 seconds."),
        ({"sleep_time": math.inf}, "Sleep time of inf is invalid. Must be at least 0.01 seconds."),
        ({"sleep_time": math.nan}, "Sleep time of nan is invalid. Must be a number."),
        ({"sleep_time": "1"}, "Sleep time of '1' is invalid. Must be a number."),
        ({"sleep_time": None}, "Sleep time of None is invalid. Must be a number."),
        ({"sleep_time": True}, "Sleep time of True is invalid. Must be a number."),
        (
            {"n_expected_cores": 0},
            "0 is not a valid number of expected cores. Must be a whole number of at least 1.",
        ),
        (
            {"n_expected_cores": "4"},
            "'4' is not a valid number of expected cores. Must be a whole number of at least 1.",
        ),
        (
            {"max_overhead": 0},
            "max_overhead of 0 is invalid. Must be a share of one core, above 0 and at most 1.",
        ),
    ],
)
def test_wrong_settings_are_refused(wrong: dict[str, Any], sentence: str) -> None:
    """With what is wrong and what would be right."""
    with pytest.raises(ValueError) as caught:
        check(Settings(**wrong))

    assert str(caught.value) == sentence


@pytest.mark.parametrize("name", ["ram_unit", "gpu_ram_unit", "time_unit"])
def test_wrong_units_are_refused(name: str) -> None:
    """For each of the three settings."""
    with pytest.raises(ValueError, match="is not a valid"):
        check(Settings()._replace(**{name: "parsecs"}))  # type: ignore[arg-type]


def test_valid_settings_pass_unchanged() -> None:
    """The fastest and the defaults."""
    settings = Settings(sleep_time=0.01, n_expected_cores=3, max_overhead=1)

    assert check(settings) == settings


def test_gpu_uuids_are_a_set_of_strings() -> None:
    """Duplicates do not count twice, and a single name is not a list of letters."""
    assert check_gpu_uuids(None) is None
    assert check_gpu_uuids(["b", "a", "b"]) == ("a", "b")
    assert check_gpu_uuids("GPU-1") == ("GPU-1",)
    with pytest.raises(ValueError, match="the set is empty"):
        check_gpu_uuids(set())
    with pytest.raises(ValueError, match="must be a string"):
        check_gpu_uuids([3])  # type: ignore[list-item]


@pytest.mark.parametrize("wrong", [0, -5, "abc", True, 1.5])
def test_a_process_id_is_a_positive_whole_number(wrong: Any) -> None:
    """Everything else is refused at once."""
    with pytest.raises(ValueError, match="is not a valid process ID"):
        check_process_id(wrong)


def test_no_process_id_means_this_process() -> None:
    """The paper's default."""
    assert check_process_id(None) == os.getpid()
    assert check_process_id(17) == 17


def test_the_environment_may_choose_the_process_source(monkeypatch: pytest.MonkeyPatch) -> None:
    """For kernels whose /proc is not reliable."""
    monkeypatch.delenv("GPU_TRACKER_SOURCE", raising=False)
    own = ("windows",) if sys.platform == "win32" else ("procfs", "darwin")
    assert list_process_sources() == (*own, "portable")
    monkeypatch.setenv("GPU_TRACKER_SOURCE", "portable")
    assert list_process_sources() == ("portable",)
    monkeypatch.setenv("GPU_TRACKER_SOURCE", "tarot")
    with pytest.raises(ValueError, match="GPU_TRACKER_SOURCE=tarot is not a valid process source"):
        list_process_sources()


def test_vendors_are_chosen_by_name() -> None:
    """One, several, or none; all by default."""
    assert check_gpu_vendors(None) is None
    assert check_gpu_vendors("none") == ()
    assert check_gpu_vendors("amd,nvidia") == check_gpu_vendors(["amd", "nvidia"]) == ("nvidia", "amd")
    with pytest.raises(ValueError, match='"voodoo" is not a valid GPU vendor'):
        check_gpu_vendors("voodoo")


@pytest.mark.parametrize("name", ["", "n" * 201])
def test_an_empty_or_long_name_of_a_run_is_refused(name: str) -> None:
    """In one short sentence."""
    with pytest.raises(ValueError, match="is not a valid name of a run") as caught:
        check(Settings(name=name))
    assert len(str(caught.value)) < 120


def test_labels_are_text_in_the_order_given() -> None:
    """Any value that can be written."""
    assert check_labels(None) == ()
    assert check_labels({"seed": 7, "site": "north"}) == (("seed", "7"), ("site", "north"))


@pytest.mark.parametrize("labels", [{"": "x"}, {"n" * 201: "x"}, {"name": "v" * 201}])
def test_a_label_without_a_name_or_too_long_is_refused(labels: dict[str, object]) -> None:
    """In one sentence."""
    with pytest.raises(ValueError, match="is not a valid label"):
        check_labels(labels)


def test_a_brand_is_one_vendor() -> None:
    """The two that the existing tool knows; for others there is `gpu`."""
    assert choose_gpu_vendors(None, None) is None
    assert choose_gpu_vendors("intel", None) == ("intel",)
    assert [choose_gpu_vendors(None, brand) for brand in ("nvidia", "amd")] == [("nvidia",), ("amd",)]
    with pytest.raises(
        ValueError,
        match=r'^"intel" is not a valid GPU brand\. Valid values are nvidia and amd\. For other devices use gpu: ',
    ):
        choose_gpu_vendors(None, "intel")
    with pytest.raises(ValueError, match=r"gpu and gpu_brand both choose whose devices are read\."):
        choose_gpu_vendors("amd", "amd")


@pytest.mark.parametrize(
    ("attempts", "timeout", "said"),
    [
        ("usage.pkl", 1.0, "in this place: give it by name"),
        (Path("usage.pkl"), 1.0, "in this place: give it by name"),
        (None, 1.0, "in this place: give it by name"),
        (2.5, 1.0, r"n_join_attempts of 2\.5 is invalid\. Must be a whole number\.$"),
        (-1, 1.0, r"n_join_attempts of -1 is invalid\. Must be a whole number\.$"),
        (5, "long", r"join_timeout of 'long' is invalid\. Must be a number\.$"),
    ],
)
def test_what_would_fail_at_the_end_is_refused_at_the_start(
    attempts: object, timeout: object, said: str
) -> None:
    """As is a positional argument that has another place in the existing tool."""
    check_join(0, 1)
    check_join(5, 10.0)
    with pytest.raises(ValueError, match=said):
        check_join(attempts, timeout)

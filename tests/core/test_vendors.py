"""Vendors of GPUs."""

from __future__ import annotations

import pytest

from gpu_tracker.core.vendors import VENDORS, explain_request, name_vendor


def test_vendors_are_spelled_as_they_spell_themselves() -> None:
    """An unknown one by its own name."""
    assert (name_vendor("nvidia"), name_vendor("moore")) == ("NVIDIA", "moore")


@pytest.mark.parametrize("value", [None, "", "none", "void", " void "])
def test_an_environment_that_asks_for_nothing_needs_no_cure(value: str | None) -> None:
    """Images set the variable even if they are to have no device."""
    environment = {} if value is None else {"NVIDIA_VISIBLE_DEVICES": value}

    assert explain_request(VENDORS["nvidia"], environment) is None
    assert explain_request(VENDORS["amd"], {"NVIDIA_VISIBLE_DEVICES": "all"}) is None


def test_an_environment_that_asks_for_devices_has_a_cure() -> None:
    """In one sentence."""
    text = explain_request(VENDORS["nvidia"], {"NVIDIA_VISIBLE_DEVICES": "0,1"})

    assert text is not None
    assert text.startswith(
        "NVIDIA_VISIBLE_DEVICES is set, but there is no NVIDIA driver here: in a container, start it with `--gpus all`"
    )

"""Faults of GPUs in words: once when they happen, and how often at the end."""

from __future__ import annotations

import pytest

from gpu_tracker.accounts.gpu_faults import FaultAccount
from gpu_tracker.core.model import CORRECTED, UNCORRECTED, XID, GpuFault


@pytest.mark.parametrize(
    ("kind", "number", "event", "words"),
    [
        (
            XID,
            79,
            "gpu_fault",
            "GPU 1: the driver reports Xid 79: the device has fallen off the bus.",
        ),
        (
            XID,
            31,
            "gpu_error",
            "GPU 1: the driver reports Xid 31: a kernel used memory that is not mapped.",
        ),
        (
            XID,
            45,
            "note",
            "GPU 1: the driver reports Xid 45: the driver cleaned up after a program that ended early.",
        ),
        (XID, 999, "gpu_error", "GPU 1: the driver reports Xid 999: see NVIDIA's list of Xid errors."),
        (
            XID,
            63,
            "note",
            "GPU 1: the driver reports Xid 63: memory that failed will be replaced by spare memory.",
        ),
        (CORRECTED, 7, "note", "GPU 1: 7 corrected memory errors (ECC)."),
        (UNCORRECTED, 1, "gpu_fault", "GPU 1: 1 uncorrected memory error (ECC)."),
    ],
)
def test_a_fault_is_told_in_words(kind: str, number: int, event: str, words: str) -> None:
    """What is the program's is told apart from what is the device's, and from what is harmless."""
    assert FaultAccount().take("1", GpuFault("u", kind, number)) == (event, words)


def test_what_is_repeated_is_told_once_and_counted() -> None:
    """By device and by number."""
    account = FaultAccount()
    told = [
        account.take(label, GpuFault("u", *fault))
        for label, fault in [
            ("0", (XID, 13)),
            ("0", (XID, 13)),
            ("1", (XID, 13)),
            ("0", (XID, 31)),
            ("0", (CORRECTED, 2)),
            ("0", (CORRECTED, 3)),
        ]
    ]

    assert [event is not None for event in told] == [True, False, True, True, True, False]
    assert list(account.list_totals()) == [
        ("note", "GPU 0: Xid 13 was reported 2 times in all."),
        ("note", "GPU 0: 5 corrected memory errors in all (ECC)."),
    ]


def test_what_was_told_in_full_is_not_repeated_at_the_end() -> None:
    """Also of several memory errors that came at once."""
    account = FaultAccount()
    account.take("0", GpuFault("u", UNCORRECTED, 4))
    account.take("0", GpuFault("u", XID, 48))

    assert list(account.list_totals()) == []


def test_a_device_that_fails_in_every_way_fills_no_report() -> None:
    """Nor does one that reports invented numbers."""
    account = FaultAccount()
    told = [account.take("0", GpuFault("u", XID, xid)) for xid in range(100, 150)]

    assert sum(event is not None for event in told) == 20
    assert list(account.list_totals()) == [
        ("note", "30 more kinds of GPU faults happened, of which nothing is kept."),
    ]

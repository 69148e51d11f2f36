"""Whether a run ended as it should."""

from __future__ import annotations

import pytest

from gpu_tracker.analysis.endings import has_failed


@pytest.mark.parametrize(
    ("ending", "code", "expected"),
    [
        ("exited", 0, False),
        ("exited", 1, True),
        ("stopped", None, False),
        ("running", None, False),
        ("sampler lost", None, False),
        ("sampler lost", -9, True),
        ("raised", None, True),
        ("killed", None, True),
    ],
)
def test_a_failure_is_an_exit_code_or_an_ending(ending: str, code: int | None, expected: bool) -> None:
    """A lost sampler is not the job's fault."""
    assert has_failed(ending, code) is expected

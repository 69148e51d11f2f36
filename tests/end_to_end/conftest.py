"""What the fault tests have in common."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from end_to_end.faults import Scene


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    """The processes of a test. None of any kind outlives it by more than two seconds."""
    with closing(Scene(tmp_path)) as scene:
        yield scene
        scene.wait_until_alone()

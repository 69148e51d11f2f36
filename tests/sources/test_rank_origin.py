"""As which process a rank began, and who has started that."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from gpu_tracker.sources.rank_origin import Origin, find_origin

SHOW = (
    "import json, os; from gpu_tracker.sources.rank_origin import find_origin; "
    "print(json.dumps([os.getpid(), os.getppid(), find_origin(os.getpid(), 'RANK')]))"
)


def make_process(proc: Path, pid: int, parent: int, *variables: str) -> None:
    """As the kernel shows it; its start is a hundred times its ID."""
    directory = proc / str(pid)
    directory.mkdir()
    (directory / "stat").write_text(f"{pid} (a b) S {parent} {'0 ' * 17}{100 * pid} 0 0")
    (directory / "environ").write_text("".join(f"{variable}\0" for variable in variables))


def test_it_is_looked_for_above_all_wrappers(tmp_path: Path) -> None:
    """They have the rank from the launcher, which has none."""
    make_process(tmp_path, 5, 1, "HOME=/")
    make_process(tmp_path, 6, 5, "RANK=1")
    make_process(tmp_path, 7, 6, "RANK=1")
    # What a rank starts need not have been told; a trainer sets the variable itself.
    make_process(tmp_path, 8, 5)

    assert find_origin(7, "RANK", proc=str(tmp_path)) == Origin("6@600", "5@500")
    assert find_origin(8, "RANK", proc=str(tmp_path)) == Origin("8@800", "5@500")


def test_what_cannot_be_known_is_none(tmp_path: Path) -> None:
    """No rank, the first process of a container, one that has ended, or processes in a ring."""
    make_process(tmp_path, 1, 0, "RANK=1")
    make_process(tmp_path, 2, 3, "RANK=1")
    make_process(tmp_path, 3, 2, "RANK=1")
    (tmp_path / "4").mkdir()
    (tmp_path / "4" / "stat").write_text("4 (a) S")
    here = str(tmp_path)

    assert find_origin(1, None, proc=here) == Origin()
    assert find_origin(1, "RANK", proc=here) == Origin("1@100")
    assert [find_origin(pid, "RANK", proc=here) for pid in (2, 4, 9)] == [Origin()] * 3


def test_of_a_real_process_it_is_its_parent() -> None:
    """Or that of the shell that was told, too."""
    plain, wrapped = (
        json.loads(
            subprocess.run(words, env={**os.environ, "RANK": "1"}, check=True, capture_output=True).stdout
        )
        for words in (
            (sys.executable, "-c", SHOW),
            ("sh", "-c", '"$0" -c "$1"; exit $?', sys.executable, SHOW),
        )
    )
    own = os.getpid()

    assert [one.partition("@")[0] for one in plain[2]] == [f"{plain[0]}", f"{own}"]
    assert [one.partition("@")[0] for one in wrapped[2]] == [f"{wrapped[1]}", f"{own}"]

"""The secret in the address."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

import pytest

from gpu_tracker.live.server.token import find_folder, find_token, forget_token, hold_token


def test_a_token_is_kept_for_its_port(tmp_path: Path) -> None:
    """Only the user can read it; another port has another one, and a new one is another one."""
    folder = str(tmp_path / "state")
    token = find_token(folder, 1)
    (kept,) = os.listdir(folder)

    assert find_token(folder, 1) == token
    assert find_token(folder, 2) != token
    assert (os.stat(folder).st_mode & 0o777, os.stat(f"{folder}/{kept}").st_mode & 0o777) == (0o700, 0o600)
    assert find_token(folder, 1, is_new=True) != token
    assert find_token(folder, 1) != token


def test_a_token_can_be_forgotten(tmp_path: Path) -> None:
    """Twice, too."""
    token = find_token(str(tmp_path), 1)
    forget_token(str(tmp_path), 1)
    forget_token(str(tmp_path), 1)
    assert find_token(str(tmp_path), 1) != token


def test_a_token_that_a_server_of_ours_holds_is_not_forgotten(tmp_path: Path) -> None:
    """A second one on its port has told nobody."""
    folder = str(tmp_path)
    token = find_token(folder, 1)
    held = hold_token(folder, 1)
    assert held is not None
    forget_token(folder, 1)
    assert find_token(folder, 1) == token

    os.close(held)
    forget_token(folder, 1)
    assert find_token(folder, 1) != token


def test_a_token_that_cannot_be_held_costs_nothing(tmp_path: Path) -> None:
    """There is none, or somebody else has locked it."""
    folder = str(tmp_path)
    assert hold_token(folder, 1) is None
    find_token(folder, 1)
    with (tmp_path / "serve-1.token").open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert hold_token(folder, 1) is None


@pytest.mark.parametrize("trouble", ["readable", "short", "not text", "a link", "a directory"])
def test_a_token_that_is_not_secret_is_replaced(tmp_path: Path, trouble: str) -> None:
    """Or is none of ours."""
    token = find_token(str(tmp_path), 1)
    (path,) = tmp_path.iterdir()
    if trouble == "readable":
        path.chmod(0o640)
    elif trouble in {"short", "not text"}:
        path.write_bytes(b"abc" if trouble == "short" else b"\xff" * 43)
    elif trouble == "a link":
        path.rename(tmp_path / "elsewhere")
        path.symlink_to(tmp_path / "elsewhere")
    else:
        path.unlink()
        path.mkdir()
    assert find_token(str(tmp_path), 1) != token


def test_without_a_place_a_token_is_new_each_time(tmp_path: Path) -> None:
    """Nothing fails."""
    (tmp_path / "file").write_text("")
    folder = str(tmp_path / "file" / "state")
    assert find_token(folder, 1) != find_token(folder, 1)


def test_the_place_is_that_of_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the system keeps such things."""
    monkeypatch.setenv("XDG_STATE_HOME", "/s")
    assert find_folder() == "/s/gpu-tracker"
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setenv("HOME", "/h")
    assert find_folder() == "/h/.local/state/gpu-tracker"

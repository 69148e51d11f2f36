"""Adds pages of the manual and completions to the wheel, made from the command line that it contains."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_COMPLETIONS = {
    "bash": "bash-completion/completions/gpu-tracker",
    "zsh": "zsh/site-functions/_gpu-tracker",
    "fish": "fish/vendor_completions.d/gpu-tracker.fish",
}


class SharedFiles(BuildHookInterface[Any]):
    """Puts them where an environment's `bin` has its `share`."""

    def initialize(self, _version: str, build_data: dict[str, Any]) -> None:
        """Before the wheel is built."""
        self._made = Path(mkdtemp())
        for place, text in list_shared(Path(self.root, "src")).items():
            path = self._made / place
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            build_data["shared_data"][str(path)] = f"share/{place}"

    def finalize(self, *_arguments: object) -> None:
        """After it."""
        shutil.rmtree(self._made)


def list_shared(source: Path) -> dict[str, str]:
    """Files by their places. The command line's options need nothing but Python's own library."""
    sys.path.insert(0, str(source))
    try:
        from gpu_tracker.cli.describe import describe_all
        from gpu_tracker.cli.manual import name_page, write_page
        from gpu_tracker.cli.shells import SHELLS
        from gpu_tracker.core.version import __version__
    finally:
        sys.path.remove(str(source))
    commands = describe_all()
    pages = {
        f"man/man1/{name_page(command)}.1": write_page(command, commands, __version__) for command in commands
    }
    return pages | {place: SHELLS[shell](commands) for shell, place in _COMPLETIONS.items()}

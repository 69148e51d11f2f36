"""A shell in a real terminal of its own."""

from __future__ import annotations

import subprocess
from pathlib import Path

from patience import wait_until

PROMPT = "prompt>"
ROWS, COLUMNS = 30, 90
CTRL_C, CTRL_Z = "C-c", "C-z"


class Terminal:
    """A shell in a terminal of its own: what one types, and what one sees."""

    def __init__(self, folder: Path) -> None:
        self._n_checks = 0
        settings = folder / "tmux.conf"
        settings.write_text("set -g history-limit 20000\n")
        self._tmux = ["tmux", "-u", "-f", str(settings), "-S", str(folder / "socket")]
        shell = f"env PS1='{PROMPT}' HISTFILE= bash --norc --noprofile -i"
        size = ["-x", str(COLUMNS), "-y", str(ROWS)]
        self._ask("new-session", "-d", *size, "-c", str(folder), shell)
        self.wait_for(PROMPT)

    def close(self) -> None:
        """Close the window."""
        subprocess.run([*self._tmux, "kill-server"], check=False)

    def _ask(self, *arguments: str) -> str:
        done = subprocess.run([*self._tmux, *arguments], capture_output=True, text=True, check=True)
        return done.stdout

    @property
    def screen(self) -> list[str]:
        """The rows that are seen."""
        return self._ask("capture-pane", "-p").split("\n")[:-1]

    @property
    def everything(self) -> list[str]:
        """Also what has scrolled away; lines that were wrapped are whole."""
        return self._ask("capture-pane", "-p", "-J", "-S", "-").split("\n")

    def press(self, *keys: str) -> None:
        """Press keys, by their names."""
        self._ask("send-keys", *keys)

    def type(self, text: str) -> None:
        """Type a line."""
        self._ask("send-keys", "-l", text)
        self.press("Enter")

    def resize(self, columns: int, rows: int) -> None:
        """Drag the window's corner."""
        self._ask("resize-window", "-x", str(columns), "-y", str(rows))

    def wait_for(self, text: str) -> None:
        """Until the screen has a line that begins so."""
        wait_until(
            lambda: any(line.startswith(text) for line in self.screen),
            f"{text!r} is shown",
            describe=lambda: "\n".join(self.everything),
        )

    def wait_for_rows(self, first: int, count: int) -> None:
        """Until a pager shows these rows of a text, from the top of the screen."""
        rows = [f"row {first + number}" for number in range(count)]
        wait_until(lambda: self.screen[:count] == rows, f"rows from {first} on are shown")

    def check_as_before(self, rows: int = ROWS, columns: int = COLUMNS) -> None:
        """All of the screen scrolls again, and programs are told its size."""
        self._n_checks += 1
        marker = f"filled {self._n_checks}"  # an earlier one may still be seen
        self.type(f"clear; stty size; seq 100; echo {marker}")
        self.wait_for(marker)
        wait_until(lambda: self.screen[-1] == PROMPT, "the prompt is back")
        screen = self.screen
        assert screen[:-2] == [str(number) for number in range(100 - rows + 3, 101)]
        assert f"{rows} {columns}" in self.everything

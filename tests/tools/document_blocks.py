"""The blocks of code of a page, and what its comments say about them.

A comment on the line before a block says what is to be done with it; readers do not see it:

<!-- not run: REASON -->   only parsed: Python is compiled, the options of our commands are checked
<!-- file: NAME -->        written to that file, for the blocks after it
<!-- exit code: N -->      how a block of shell ends
"""

from __future__ import annotations

import re
import shlex
from collections import Counter
from pathlib import Path
from typing import NamedTuple

PROJECT = Path(__file__).parents[2]

_FENCE = re.compile(r"^( *)```(.*)$")
_COMMENT = re.compile(r"^ *<!-- (not run|file|exit code): (.+) -->$")
RUN = ("python", "sh", "console")
"""Languages that are run. In a console, the lines that begin with a dollar are."""
NEVER_RUN = ("ipython",)
"""They need a reason."""
SHOWN = ("text", "ini", "json", "yaml", "groovy", "csv")
"""Output and files, which are not run."""
_SEPARATORS = re.compile(r"^[;&|()<>]+$")
_BLOCK = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)
_SPAN = re.compile(r"`(?:gpu-tracker|gput) ([^`]+)`")
_VARIES = re.compile(
    r"\.\.\.|[\d█▉▊▋▌▍▎▏░]|(serious|warning|hint|note|waits|others|tracker's|recording|charts|peak|largest)\b:?"
)
_PATTERN = re.compile(r"[\[{]|\.\.\.|\bCOMMAND\b|\bTOPIC\b")


class Block(NamedTuple):
    """One block."""

    page: str
    line: int
    language: str
    text: str
    reason: str = ""
    """Why it is not run."""
    file: str = ""
    exit_code: int = 0

    @property
    def place(self) -> str:
        """Where it is."""
        return f"{self.page}:{self.line}"

    @property
    def is_run(self) -> bool:
        """Itself, or as a file that others run."""
        return not self.reason and (self.language in RUN or bool(self.file))

    @property
    def kind(self) -> str:
        """What happens to it."""
        if self.is_run:
            return "run"
        return "shown" if self.language in SHOWN else "only parsed"

    @property
    def commands(self) -> str:
        """What a shell would be given."""
        if self.language != "console":
            return self.text
        taken, goes_on = [], False
        for line in self.text.splitlines():
            if goes_on or line.startswith("$ "):
                taken.append(line if goes_on else line[2:])
                goes_on = line.endswith("\\")
        return "\n".join(taken) + "\n"

    @property
    def labels(self) -> set[str]:
        """The first words of the output that a console shows: without numbers, bars, and what depends on the machine."""
        shown = [
            line
            for line in self.text.splitlines()
            if line not in self.commands.splitlines() and not line.startswith("$ ")
        ]
        return {words[0] for line in shown if (words := line.split()) and not _VARIES.match(words[0])}


def find_blocks(page: str, text: str) -> list[Block]:
    """All blocks of a page, in order."""
    blocks: list[Block] = []
    marks: dict[str, str] = {}
    opened: tuple[int, str, str] | None = None
    lines: list[str] = []
    for number, line in enumerate(text.splitlines(), 1):
        fence, comment = _FENCE.match(line), _COMMENT.match(line)
        if opened is not None and fence and not fence[2]:
            start, indent, language = opened
            content = "\n".join(one.removeprefix(indent) for one in lines) + "\n"
            exit_code = int(marks.get("exit code", 0))
            blocks.append(
                Block(
                    page, start, language, content, marks.get("not run", ""), marks.get("file", ""), exit_code
                )
            )
            opened, lines, marks = None, [], {}
        elif opened is not None:
            lines.append(line)
        elif fence:
            opened = number, fence[1], fence[2].split(" ")[0].strip()
        elif comment:
            marks[comment[1]] = comment[2]
        elif line.strip():
            marks = {}
    return blocks


def find_calls(commands: str) -> list[list[str]]:
    """The words after `gpu-tracker`, or `gput`, wherever it is called: also behind a launcher."""
    calls: list[list[str]] = []
    for line in commands.replace("\\\n", " ").splitlines():
        lexer = shlex.shlex(line, posix=True, punctuation_chars=";&|()<>")
        lexer.whitespace_split = True
        call: list[str] | None = None
        is_target = False
        for word in lexer:
            if is_target:
                is_target = False
            elif _SEPARATORS.match(word):
                is_target = word[0] in "<>"
                call = call if is_target else None
            elif call is None and word in {"gpu-tracker", "gput"}:
                call = []
                calls.append(call)
            elif call is not None:
                call.append(word)
    return [call for call in calls if call]


def find_spans(text: str) -> list[list[str]]:
    """The words after `gpu-tracker` in sentences and tables, without patterns such as `gpu-tracker COMMAND [OPTION...]`."""
    text = _BLOCK.sub("", text)
    spans = (" ".join(span.split()).replace("\\|", "|") for span in _SPAN.findall(text))
    return [shlex.split(span) for span in spans if not _PATTERN.search(span)]


def read_pages() -> dict[str, list[Block]]:
    """The blocks of every page."""
    paths = [PROJECT / "README.md", *sorted((PROJECT / "docs").rglob("*.md"))]
    pages = [path.relative_to(PROJECT).as_posix() for path in paths]
    return {page: find_blocks(page, (PROJECT / page).read_text()) for page in pages}


def count(pages: dict[str, list[Block]]) -> str:
    """How many blocks of each kind there are, in a sentence."""
    kinds = Counter(block.kind for blocks in pages.values() for block in blocks)
    numbers = ", ".join(f"{kinds[kind]} {kind}" for kind in ("run", "only parsed", "shown"))
    return f"{kinds.total()} blocks of code on {len(pages)} pages: {numbers}"


if __name__ == "__main__":
    print(count(read_pages()))

"""Every block of code in the documents runs as it stands, or says why not, and is then parsed at least."""

from __future__ import annotations

import ast
import configparser
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tools.command_lines import find_fault
from tools.document_blocks import (
    NEVER_RUN,
    PROJECT,
    RUN,
    SHOWN,
    Block,
    count,
    find_blocks,
    find_calls,
    find_spans,
    read_pages,
)

STAGES = Path(__file__).with_name("document_code")
"""For a page, the directory of its name: the files that its blocks need, and Python that is run before the first."""
BLOCKS = read_pages()
SHOWING = ("docs/tutorial.md", "docs/howto/")
"""Pages whose output is that of the programs on them; others show it of larger ones."""
RUN_PAGES = [page for page, blocks in BLOCKS.items() if any(block.is_run for block in blocks)]


@pytest.mark.parametrize("page", BLOCKS)
def test_every_block_has_a_language(page: str) -> None:
    """And no other than those of which somebody has said here what happens to them."""
    wrong = [block for block in BLOCKS[page] if block.language not in {*RUN, *NEVER_RUN, *SHOWN}]
    unsaid = [block for block in BLOCKS[page] if block.language in NEVER_RUN and not block.reason]

    assert [f"{block.place} {block.language}" for block in (*wrong, *unsaid)] == []


@pytest.mark.parametrize("page", BLOCKS)
def test_every_block_can_be_parsed(page: str, tmp_path: Path) -> None:
    """Python, shell with the options of our commands, JSON and INI."""
    for block in BLOCKS[page]:
        if block.language == "python":
            compile(block.text, block.place, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        elif block.language in {"sh", "console"}:
            subprocess.run(["bash", "-n", "-c", block.commands], check=True)
            calls = find_calls(block.commands)
            assert [(block.place, *call) for call in calls if find_fault(call)] == []
        elif block.language == "json":
            json.loads(block.text)
        elif block.language == "ini":
            configparser.ConfigParser().read_string(block.text)


@pytest.mark.uncovered
@pytest.mark.parametrize("page", RUN_PAGES)
def test_every_block_runs(page: str, tmp_path: Path) -> None:
    """In order, in a directory that has only what the page tells its reader to have."""
    stage = STAGES / page.removeprefix("docs/").removesuffix(".md")
    place = tmp_path / "place"
    shutil.copytree(STAGES / "common", place)
    if stage.is_dir():
        shutil.copytree(stage, place, dirs_exist_ok=True)
    prelude = place / "prelude.py"
    blocks = [
        {
            "place": one.place,
            "language": one.language,
            "text": one.commands,
            "file": one.file,
            "exit_code": one.exit_code,
        }
        for one in BLOCKS[page]
        if one.is_run
    ]
    (tmp_path / "blocks.json").write_text(json.dumps(blocks))
    words: list[str | Path] = [
        sys.executable,
        PROJECT / "tests/tools/run_blocks.py",
        tmp_path / "blocks.json",
        tmp_path / "outputs.json",
    ]
    result = subprocess.run(
        [*words, str(prelude) if prelude.exists() else ""],
        cwd=place,
        env=_make_environment(tmp_path),
        capture_output=True,
        text=True,
        timeout=200,
    )

    assert result.returncode == 0, result.stdout + result.stderr
    outputs = json.loads((tmp_path / "outputs.json").read_text())
    if page.startswith(SHOWING):
        assert [
            missing for block in BLOCKS[page] for missing in _find_missing(block, outputs.get(block.place))
        ] == []


def _find_missing(block: Block, output: str | None) -> list[str]:
    """What a page shows in the beginning of a line, and the program does not."""
    printed = {words[0] for line in (output or "").splitlines() if (words := line.split())}
    return [
        f"{block.place}: {label}"
        for label in sorted(block.labels - printed)
        if output is not None and block.language == "console"
    ]


def _make_environment(directory: Path) -> dict[str, str]:
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("GPU_TRACKER", "SLURM"))
    }
    commands = Path(sys.executable).parent
    return {**kept, "PATH": f"{commands}{os.pathsep}{kept['PATH']}", "HOME": str(directory), "TERM": "dumb"}


def test_what_is_run_is_counted() -> None:
    """`make docs` prints it."""
    result = subprocess.run(
        [sys.executable, PROJECT / "tests/tools/document_blocks.py"], capture_output=True, text=True
    )

    assert result.stdout == f"{count(BLOCKS)}\n"
    assert re.match(r"\d+ blocks of code on \d+ pages: \d+ run, ", result.stdout)


def test_blocks_are_found_with_their_marks() -> None:
    """A mark counts for the block that follows it, and only for that."""
    text = "<!-- not run: needs a GPU -->\n\n```sh\ngpu-tracker watch\n```\n\n```\nx\n```\n<!-- file: a.py -->\n```python\n1\n```\n"
    first, second, third = find_blocks("a.md", text)

    assert (first.language, first.reason, first.line) == ("sh", "needs a GPU", 3)
    assert (second.language, second.reason) == ("", "")
    assert (third.file, third.text) == ("a.py", "1\n")


def test_calls_are_found_behind_launchers() -> None:
    """And end where the shell's command ends."""
    text = "srun gpu-tracker run --record runs -- a | tee b &\nx=$(gput ls -f json) && gput size 'a b' > c.txt -f text\n"

    assert find_calls(text) == [
        ["run", "--record", "runs", "--", "a"],
        ["ls", "-f", "json"],
        ["size", "a b", "-f", "text"],
    ]


def test_a_console_runs_its_commands_only() -> None:
    """A command may go on in the next line."""
    assert find_blocks("a.md", "```console\n$ a \\\n  b\nc\n$ d\n```\n")[0].commands == "a \\\n  b\nd\n"


@pytest.mark.parametrize("page", [*BLOCKS, "CONTRIBUTING.md"])
def test_commands_in_sentences_are_those_of_the_parsers(page: str) -> None:
    """Names of commands, and their options; a command that is only named needs no arguments."""
    faults = {" ".join(words): find_fault(words) for words in find_spans((PROJECT / page).read_text())}

    assert {words: fault for words, fault in faults.items() if fault and " are required: " not in fault} == {}


def test_faults_of_a_command_line_are_found() -> None:
    """Also those of an action of a command."""
    assert find_fault(["run", "--st", "0.1", "--", "job", "--whatever"]) == ""
    assert find_fault(["report", "--help"]) == ""
    assert find_fault(["-e", "job", "--st", "1"]) == ""
    assert "nosuch" in find_fault(["nosuch"])
    assert "--nosuch" in find_fault(["report", "--nosuch"])
    assert "--nosuch" in find_fault(["sub-track", "combine", "--stf", "a.csv", "-p", "b.csv", "--nosuch"])


def test_labels_of_a_console_are_what_a_run_always_prints() -> None:
    """Not its numbers, bars, findings, or what the machine had to say."""
    text = "```console\n$ a\nTime 3 s\n  ███░\n  12 x\nwarning: y\n...\n  waits z\n$ b\nCPU\n```\n"

    assert find_blocks("a.md", text)[0].labels == {"Time", "CPU"}

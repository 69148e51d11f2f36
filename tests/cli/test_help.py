"""What a person finds who types the name of the program, asks for help, or opens the manual."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from sysconfig import get_path

import pytest

from gpu_tracker.cli import COMMANDS
from gpu_tracker.cli.describe import Command, describe_all, list_parsers
from gpu_tracker.cli.examples import NAME
from gpu_tracker.cli.execute import make_parser
from gpu_tracker.cli.manual import name_page
from gpu_tracker.cli.topics import TOPICS

ALL = describe_all()
PARSERS = {
    parser.prog: parser
    for parser in (make_parser(), *(one for name in COMMANDS for one in list_parsers(name)))
}
SHARE = Path(get_path("data"), "share")


def ask(*words: str) -> subprocess.CompletedProcess[str]:
    """What is told."""
    return subprocess.run([sys.executable, "-m", "gpu_tracker", *words], capture_output=True, text=True)


def test_without_a_word_it_shows_the_first_steps() -> None:
    """Five, and each is a command that exists."""
    told = ask()
    steps = re.findall(rf"^  {NAME} ([a-z]+)", told.stdout, re.MULTILINE)

    assert (told.returncode, told.stderr) == (0, "")
    assert len(steps) == 5
    assert set(steps) <= set(COMMANDS)


@pytest.mark.parametrize("command", ALL, ids=lambda command: command.name or "-e")
def test_help_begins_with_an_example(command: Command) -> None:
    """Which this very command takes."""
    told = ask(*command.words, "--help").stdout

    assert re.match(rf"examples?:\n  .*{NAME}", told)
    for line, _ in command.examples:
        words = shlex.split(line.partition(f"{NAME} ")[2].removesuffix(')"'))
        prog = max((prog for prog in PARSERS if f"{NAME} {' '.join(words)}".startswith(prog)), key=len)
        arguments = words[len(prog.split()) - 1 :]
        if ">" in arguments:
            arguments = arguments[: arguments.index(">")]
        PARSERS[prog].parse_args(
            [word.rstrip(')"') for word in arguments]
        )  # it raises if it does not know one


@pytest.mark.parametrize("name", [*COMMANDS, "sub-track analyze"])
def test_help_on_a_command_is_its_help(name: str) -> None:
    """Both ways of asking."""
    assert ask("help", *name.split()).stdout == ask(*name.split(), "--help").stdout


@pytest.mark.parametrize("topic", TOPICS)
def test_each_topic_fits_a_terminal(topic: str) -> None:
    """And says something."""
    lines = ask("help", topic).stdout.splitlines()

    assert len(lines) > 3
    assert max(map(len, lines)) <= 80
    assert topic in ask("help").stdout


def test_every_variable_that_is_read_is_explained() -> None:
    """Those of users: what we tell our own processes is for nobody else."""
    source = Path(__file__).parents[2] / "src"
    read = {
        name
        for file in source.rglob("*.py")
        for name in re.findall(r'VARIABLE = "(GPU_TRACKER_\w+)"', file.read_text(encoding="utf-8"))
    }
    told = ask("help", "environment").stdout

    assert {"GPU_TRACKER_RECORD", "GPU_TRACKER_RULES", "GPU_TRACKER_SAY"} <= read
    assert {name for name in read if name not in told} <= {
        "GPU_TRACKER_MAILBOX",
        "GPU_TRACKER_SOURCE",
        "GPU_TRACKER_DASK",
    }


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        (["help", "limts"], "No help on 'limts'. Did you mean 'limits'?"),
        (["help", "zzz"], "No help on 'zzz'. `gpu-tracker help` lists it all."),
        (["help", "ls", "x"], "No help on 'ls x'. `gpu-tracker ls --help` lists what it can do."),
        (["runn"], "Unknown command 'runn'. Did you mean 'run'?"),
    ],
)
def test_what_is_mistyped_is_answered_with_what_is_near(words: list[str], answer: str) -> None:
    """In one sentence."""
    told = ask(*words)

    assert (told.returncode, told.stdout, told.stderr) == (2, "", f"{NAME}: {answer}\n")


@pytest.mark.parametrize("command", ALL, ids=name_page)
def test_the_manual_of_the_installed_wheel_has_every_option(command: Command) -> None:
    """And `man`, where it is installed, has nothing to complain of."""
    page = SHARE / "man" / "man1" / f"{name_page(command)}.1"
    text = page.read_text(encoding="utf-8").replace("\\-", "-")

    for option in (*command.options, *command.places):
        assert f".B {', '.join(option.flags) or option.placeholder}" in text
    if shutil.which("groff"):
        done = subprocess.run(
            ["groff", "-ww", "-rLL=200n", "-man", "-Tutf8", "-P-cbou", str(page)],
            capture_output=True,
            text=True,
        )
        assert (done.returncode, done.stderr) == (0, "")
        assert command.examples[0][0] in done.stdout


@pytest.mark.parametrize(
    ("shell", "place"),
    [
        ("bash", "bash-completion/completions/gpu-tracker"),
        ("zsh", "zsh/site-functions/_gpu-tracker"),
        ("fish", "fish/vendor_completions.d/gpu-tracker.fish"),
    ],
)
def test_completions_are_where_shells_look_for_them(shell: str, place: str) -> None:
    """The same as those that are printed."""
    assert (SHARE / place).read_text(encoding="utf-8") == ask("completion", shell).stdout

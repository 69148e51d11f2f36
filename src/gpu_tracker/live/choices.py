"""What the user of `watch` has chosen, and what each key changes. Pure."""

from __future__ import annotations

from ..core.values import NamedTuple
from .keys import DOWN, END, ESCAPE, HOME, PAGE_DOWN, PAGE_UP, UP
from .selection import GPU, PID, SORTS, USER, Selection, split_words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

HELP = (
    ("up down, k j", "scroll through the processes"),
    ("page up, page down", "the same, by a whole page; also b and space"),
    ("home, end", "the first and the last processes"),
    ("s S", f"sort by {', '.join(SORTS)} in turn"),
    ("r", "reverse the order"),
    ("g", "show only some GPUs, by their numbers"),
    ("u", "show only processes of some users"),
    ("p", "show only some processes, by their PIDs"),
    ("a", "show all again"),
    ("h ?", "this help"),
    ("q, Ctrl-C", "quit"),
)

POWER_LIMITS = ("enforced.power.limit", "power.limit")
"""The first that a driver reports is the one in force."""
FAN, ENCODER, DECODER = "fan.speed", "utilization.encoder", "utilization.decoder"

_ENTER, _BACKSPACES = ("\r", "\n"), ("\x7f", "\x08")
_LONGEST_ANSWER = 200
_KINDS = {"g": GPU, "u": USER, "p": PID}


class Shown(NamedTuple):
    """Which columns a table has besides the usual ones, and what is left out."""

    has_pid: bool = True
    has_user: bool = True
    has_command: bool = True
    has_directory: bool = False
    """Whether a command begins with the directory of its program."""
    has_fan: bool = False
    has_codec: bool = False
    """The video encoder and decoder."""
    name_cells: int = 30
    """The longest name of a device."""
    has_title: bool = True
    has_processes: bool = True

    @property
    def details(self) -> tuple[str, ...]:
        """What is shown besides the usual reading, by nvidia-smi's names. A limit may be changed at any time."""
        codec = (ENCODER, DECODER) if self.has_codec else ()
        return (*POWER_LIMITS, *((FAN,) if self.has_fan else ()), *codec)


class Prompt(NamedTuple):
    """A question that is being answered."""

    kind: str
    """GPU, user or PID."""
    text: str = ""


class Extent(NamedTuple):
    """How much there is to scroll."""

    n_processes: int = 0
    n_visible: int = 0

    @property
    def last(self) -> int:
        """The number of the first process on the last page."""
        return max(0, self.n_processes - self.n_visible)


class Choices(NamedTuple):
    """What is shown."""

    selection: Selection = Selection()
    shown: Shown = Shown()
    first: int = 0
    """The number of the first process that is visible."""
    prompt: Prompt | None = None
    has_help: bool = False
    is_over: bool = False


def press_all(choices: Choices, keys: Sequence[str], extent: Extent) -> Choices:
    """After these keys."""
    for key in keys:
        choices = press(choices, key, extent)
    return choices


def press(choices: Choices, key: str, extent: Extent) -> Choices:
    """After one key."""
    if choices.prompt is not None:
        return _answer(choices, choices.prompt, key)
    if key in ("q", "Q"):
        return choices._replace(is_over=True)
    if key in ("h", "?") or choices.has_help:
        return choices._replace(has_help=not choices.has_help)
    if key in _KINDS:
        return choices._replace(prompt=Prompt(_KINDS[key]))
    if key in ("s", "S", "r", "a"):
        return choices._replace(selection=_change(choices.selection, key), first=0)
    return choices._replace(first=_scroll(choices.first, key, extent))


def _change(selection: Selection, key: str) -> Selection:
    if key == "a":
        return selection._replace(gpus=(), users=(), pids=())
    if key == "r":
        return selection._replace(is_reversed=not selection.is_reversed)
    step = 1 if key == "s" else -1
    sort = SORTS[(SORTS.index(selection.sort) + step) % len(SORTS)]
    return selection._replace(sort=sort, is_reversed=False)


def _scroll(first: int, key: str, extent: Extent) -> int:
    """The processes may have become fewer since the last key."""
    page = max(1, extent.n_visible)
    steps = {UP: -1, "k": -1, DOWN: 1, "j": 1, PAGE_UP: -page, "b": -page, PAGE_DOWN: page, " ": page}
    ends = {HOME: 0, END: extent.last}
    wanted = ends.get(key, min(first, extent.last) + steps.get(key, 0))
    return max(0, min(wanted, extent.last))


def _answer(choices: Choices, prompt: Prompt, key: str) -> Choices:
    """The same prompt with another text, or none."""
    if key == ESCAPE:
        return choices._replace(prompt=None)
    if key in _ENTER:
        return choices._replace(selection=_apply(choices.selection, prompt), prompt=None, first=0)
    if key in _BACKSPACES:
        return choices._replace(prompt=prompt._replace(text=prompt.text[:-1]))
    is_letter = len(key) == 1 and key.isprintable() and (prompt.kind != PID or key in "0123456789, ")
    text = (prompt.text + key)[:_LONGEST_ANSWER] if is_letter else prompt.text
    return choices._replace(prompt=prompt._replace(text=text))


def _apply(selection: Selection, prompt: Prompt) -> Selection:
    words = split_words(prompt.text)
    if prompt.kind == GPU:
        return selection._replace(gpus=words)
    if prompt.kind == USER:
        return selection._replace(users=words)
    return selection._replace(pids=tuple(map(int, words)))

"""Text for a terminal: its width, where to cut it, and removal of control characters. Pure."""

from __future__ import annotations

from .values import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

# Select Graphic Rendition; an empty style is the terminal's default.
PLAIN, BOLD, DIM, RED, GREEN, YELLOW, CYAN, REVERSE = "", "1", "2", "31", "32", "33", "36", "7"

_WIDE = ("W", "F")
_UNITS = frozenset(
    ["%", "×", "B", "kB", "MB", "GB", "TB", "MiB", "GiB", "s", "min", "h", "d", "J", "Wh", "kWh", "W"]
)
# From here on the colour of a load changes.
_HIGH_PERCENT = 80
_MIDDLE_PERCENT = 30
# No wider than what they replace, but for the arrow, which is in no table: tables stay straight, and lines fit.
_ASCII = str.maketrans({"…": "~", "×": "x", "·": "-", "°": None, "→": "->"})
_AT_LEAST = ("≥ ", ">=")


class Span(NamedTuple):
    """Text in one style."""

    text: str
    style: str = PLAIN


def neutralize(text: str) -> str:
    """Replace control characters and line breaks by question marks."""
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() else "?" for letter in text)


def neutralize_lines(text: str) -> str:
    """The same for a text of several lines."""
    return "\n".join(map(neutralize, text.split("\n")))


def join_command(command: Iterable[str]) -> str:
    """A command as one line to read: a program in one of its arguments may have many."""
    return " ".join(" ".join(command).split())


def count_cells(text: str) -> int:
    """The width on a screen: some characters take two cells, combining marks none."""
    if text.isascii():
        return len(text)
    return sum(map(_cells_of, text))


def clip(text: str, cells: int, ellipsis: str = "…") -> str:
    """The text, cut with an ellipsis if it does not fit."""
    if text.isascii() and len(text) <= cells:
        return text
    most = cells - len(ellipsis)
    used = cut = 0
    for index, letter in enumerate(text):
        if used <= most:
            cut = index
        used += _cells_of(letter)
        if used > cells:
            return text[:cut] + ellipsis[: max(0, cells)]
    return text


def shorten(text: str, cells: int) -> str:
    """Text from outside, without control characters and not too wide."""
    return clip(neutralize(text), cells)


def shorten_middle(text: str, cells: int) -> str:
    """The same, but its begin and its end stay: of names that begin alike, the end tells more."""
    text = neutralize(text)
    if count_cells(text) <= cells:
        return text
    end = clip(text[::-1], cells // 2, "")[::-1]
    return clip(text, cells - count_cells(end)) + end


def join_some(names: Sequence[str], most: int) -> str:
    """So many names, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def count_of(number: int, noun: str) -> str:
    """`1 device`, `2 devices`, `3 processes`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}{'es' if noun.endswith('s') else 's'}"


def pad(text: str, cells: int, *, is_number: bool = False) -> str:
    """Pad with spaces: numbers to the right, words to the left."""
    spaces = " " * (cells - count_cells(text))
    return spaces + text if is_number else text + spaces


def wrap(text: str, columns: int | None, hanging: int = 0) -> list[str]:
    """Lines of at most that many cells, broken between words; all but the first are indented.

    Only a word that is longer than a line is broken.
    """
    if columns is None or count_cells(text) <= columns:
        return [text]
    margin = text[: min(len(text) - len(text.lstrip(" ")), columns // 2)]
    hanging = min(hanging, columns // 2)
    first, *words = _split(text.lstrip(" "))
    start, *rest = _break(first, columns - max(len(margin), hanging))
    lines = [margin + start, *(" " * hanging + part for part in rest)]
    for word in words:
        if count_cells(lines[-1]) + 1 + count_cells(word) <= columns:
            lines[-1] += f" {word}"
        else:
            lines += [" " * hanging + part for part in _break(word, columns - hanging)]
    return [line.rstrip(" ") for line in lines]


def wrap_all(texts: Iterable[str], columns: int | None, hanging: int = 0) -> list[str]:
    """The same for several texts, each on lines of its own."""
    return [line for text in texts for line in wrap(text, columns, hanging)]


def _break(word: str, cells: int) -> list[str]:
    """The word in parts that are not wider than that."""
    parts = []
    while count_cells(word) > cells:
        first = clip(word, cells, "") or word[:1]
        parts.append(first)
        word = word[len(first) :]
    return [*parts, word]


def _split(text: str) -> list[str]:
    """Words; a number stays with its unit."""
    words: list[str] = []
    for word in text.split(" "):
        if words and words[-1][-1:].isdigit() and _is_unit(word):
            words[-1] += f" {word}"
        else:
            words.append(word)
    return words


def _is_unit(word: str) -> bool:
    return word.rstrip(".,:;)") in _UNITS


def to_ascii(text: str) -> str:
    """The text for a terminal that has nothing else; tables stay straight."""
    return text.replace(*_AT_LEAST).translate(_ASCII).encode("ascii", "replace").decode()


def choose_style(percent: float | None) -> str:
    """The colour of a load."""
    if percent is None or percent < 1:
        return PLAIN
    if percent < _MIDDLE_PERCENT:
        return GREEN
    return YELLOW if percent < _HIGH_PERCENT else RED


def paint(spans: Iterable[Span], cells: int, *, has_colour: bool, ellipsis: str = "…") -> str:
    """One line, never wider than that many cells. What controls a terminal is in the styles alone, never in the text."""
    painted = []
    left = cells
    for span in spans:
        if left <= 0:
            break
        whole = neutralize(span.text)
        text = clip(whole, left, ellipsis)
        left = 0 if text != whole else left - count_cells(text)
        painted.append(f"\x1b[{span.style}m{text}\x1b[0m" if has_colour and span.style else text)
    return "".join(painted)


def align(
    rows: Sequence[Sequence[str]], words: frozenset[int] = frozenset({0}), gap: str = "  "
) -> list[str]:
    """One line per row; columns are right-aligned unless they are in `words`."""
    widths = [max(map(count_cells, column)) for column in zip(*rows, strict=True)]
    return [
        gap.join(
            pad(cell, width, is_number=index not in words)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def find_excess(lines: Iterable[str], columns: int | None) -> int:
    """By how many cells the widest line is too wide for a screen."""
    return 0 if columns is None else max(0, max(map(count_cells, lines)) - columns)


def narrow(
    rows: Sequence[Sequence[str]],
    column: int,
    excess: int,
    fewest: int,
    cut: Callable[[str, int], str] = shorten_middle,
) -> list[list[str]]:
    """The rows with one column that is narrower by that many cells, but not below the fewest."""
    widest = max(count_cells(row[column]) for row in rows)
    cells = max(fewest, widest - excess)
    return [[*row[:column], cut(row[column], cells), *row[column + 1 :]] for row in rows]


def _cells_of(letter: str) -> int:
    try:
        import unicodedata  # most text is ASCII
    except (ImportError, OSError):
        return 1  # the installation cannot be read any more, or no descriptor is free

    if unicodedata.combining(letter) or unicodedata.category(letter) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(letter) in _WIDE else 1

"""What `gpu-tracker help TOPIC` explains beside the commands: text from the tables of the code. Pure."""

from __future__ import annotations

from textwrap import wrap

from ..core.figures import REGION, RUN
from .examples import NAME

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_COLUMNS = 80
_ENVIRONMENT = (
    ("GPU_TRACKER_RECORD", "directory of recordings: the default of --record, and of Tracker(record=None)"),
    ("GPU_TRACKER_SAY", "which ranks of a parallel job print: all, first (default) or none"),
    ("GPU_TRACKER_RULES", "a file with thresholds of findings to change, as --rules"),
    ("NO_COLOR", "if it is not empty: no colours"),
)
_EXIT_CODES = (
    (
        "run, -e",
        "that of the job; 127 if it does not exist, 126 if it cannot be executed, 128 + N (in a shell) if signal N killed it",
    ),
    (
        "--fail-if",
        "0 if all limits hold, 1 if one is broken, 2 if something could not be checked, 3 for other trouble",
    ),
    (
        "any command",
        "2 for an invalid request or an unreadable recording, 3 for other trouble, such as a full disk",
    ),
    ("query, pmon", "1 if there is no GPU, or none lists its processes"),
    ("doctor", "1 if something cannot be measured"),
)
_LIMITS = (
    ("peak_ram > 8GB", "a size: B, kB, MB, GB, TB, KiB, MiB, GiB, TiB"),
    ("time > 1h", "a duration: ms, s, min, h, d"),
    ("gpu_utilization < 50%", "a share of what is there"),
    ("energy > 2kWh", "energy: J, kJ, Wh, kWh"),
    ("peak_gpu_ram > +10%", "compared with the baseline of `compare`"),
    ("time > 1.2x", "the same as a factor"),
    ("time > +5% beyond noise", "only if repeats show that it is no chance"),
    ("regions.forward.peak_ram > 2GB", "a figure of a region"),
    ("metrics.loss > 0.5", "the last value of a metric"),
)


def _explain_environment() -> str:
    return _list(_ENVIRONMENT)


def _explain_exit_codes() -> str:
    return _list(_EXIT_CODES)


def _explain_limits() -> str:
    figures, regions = (", ".join(figure.name for figure in some) for some in (RUN, REGION))
    known = "\n".join(wrap(f"Figures: {figures}. Of regions: {regions}.", _COLUMNS))
    return f"A limit (--fail-if) says what must not happen:\n{_list(_LIMITS)}\n{known}\n"


TOPICS: dict[str, tuple[str, Callable[[], str]]] = {
    "environment": ("variables that it reads", _explain_environment),
    "exit-codes": ("what the exit code of each command means", _explain_exit_codes),
    "limits": ("how a limit is written, and which figures there are", _explain_limits),
}


def explain_topic(name: str) -> str:
    """Its text."""
    return TOPICS[name][1]()


def list_topics() -> str:
    """Their names, and what they are about."""
    return f"Topics ({NAME} help TOPIC):\n" + _list((name, about) for name, (about, _) in TOPICS.items())


def _list(rows: Iterable[tuple[str, str]]) -> str:
    """In two columns."""
    rows = list(rows)
    width = max(len(name) for name, _ in rows)
    return "".join(
        "\n".join(
            wrap(
                meaning, _COLUMNS, initial_indent=f"  {name:<{width}}  ", subsequent_indent=" " * (width + 4)
            )
        )
        + "\n"
        for name, meaning in rows
    )

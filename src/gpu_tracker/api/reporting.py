"""What findings need besides the totals: the samples in the file of a recording, and the user's changes of the rules."""

from __future__ import annotations

import os

from ..core.config import RULES_VARIABLE
from ..core.errors import RecordingError, TrackerError, UsageError
from ..reports.build import NO_CHOICES, Choices, build, is_worth_judging

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from ..analysis.findings.judge import Changes
    from ..core.model import RecordingData
    from ..reports.build import Report


def build_judged(recording: RecordingData, path: str | None, choices: Choices) -> Report:
    """The report of a run that has just ended, with what only its file has if that is worth reading."""
    if path is None or not is_worth_judging(recording):
        return build(recording, choices=choices)
    from ..recording.reader import load

    try:
        kept = load(path)
    except RecordingError:  # deleted meanwhile
        return build(recording, choices=choices)
    whole = recording._replace(samples=kept.samples, metrics=kept.metrics, processes=kept.processes)
    return report_on(whole, choices)


def report_on(recording: RecordingData, choices: Choices = NO_CHOICES) -> Report:
    """The report of a recording that has its samples: for findings and charts."""
    from ..recording.sampled import read_columns

    return build(recording, read_columns(recording), choices)


def read_changes(path: str | None = None) -> Changes | None:
    """The changes in that file, or in the one that the environment names. Raises a UsageError that says what is wrong."""
    path = path or os.environ.get(RULES_VARIABLE)
    if not path:
        return None
    from configparser import ConfigParser, Error

    from ..analysis.findings.table import parse_changes

    parser = ConfigParser(interpolation=None, default_section="")
    try:
        with open(path, encoding="utf-8") as file:
            parser.read_file(file, path)
    except OSError as error:
        raise UsageError(f"Cannot read the rules in {path}: {error.strerror}.") from None
    except (Error, UnicodeDecodeError) as error:
        problem = str(error).splitlines()[0].rstrip(".:")
        raise UsageError(f"Cannot understand the rules in {path}: {problem}.") from None
    try:
        return parse_changes({name: dict(section) for name, section in parser.items() if name})
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from None


def find_changes(warn: Callable[[str], None]) -> Changes | None:
    """The changes in the file that the environment names; a program must not fail because they are wrong."""
    try:
        return read_changes()
    except TrackerError as error:
        warn(str(error))
        return None

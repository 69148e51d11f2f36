"""Reports with the samples of their recording, for charts and findings; and the user's changes of the rules."""

from __future__ import annotations

import os

from ..core.config import RULES_VARIABLE
from ..core.errors import RecordingError, TrackerError, UsageError
from ..reports.build import SHORTEST_SECONDS, build, is_worth_judging
from ..reports.choices import NO_CHOICES, Choices

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from ..analysis.findings.finding import Finding
    from ..analysis.findings.judge import Changes
    from ..core.model import RecordingData
    from ..reports.build import Report
    from .session import Session


def report_on(recording: RecordingData, choices: Choices = NO_CHOICES) -> Report:
    """The report of a recording that has its samples."""
    from ..recording.sampled import read_columns

    try:
        return build(recording, read_columns(recording), choices)
    except RecordingError:  # the file has gone since
        return build(recording, choices=choices)


def find_findings(recording: RecordingData, changes: Changes | None = None) -> tuple[Finding, ...]:
    """What was found in a recording, worst first."""
    return report_on(recording, Choices(changes)).findings


def report_session(
    session: Session, recording: RecordingData, choices: Choices, *, is_short_too: bool = False
) -> Report:
    """The report of a session that has stopped; its samples are read only if there is something to see in them."""
    is_worth_reading = recording.totals.at_seconds >= SHORTEST_SECONDS or is_worth_judging(recording)
    if not is_worth_reading and not is_short_too:
        return build(recording, choices=choices)
    return report_on(session.read_samples(recording), choices)


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


def find_changes(warn: Callable[[str], object]) -> Changes | None:
    """The changes in the file that the environment names; a program must not fail because they are wrong."""
    try:
        return read_changes()
    except TrackerError as error:
        warn(str(error))
        return None

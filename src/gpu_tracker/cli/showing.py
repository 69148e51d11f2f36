"""A job on the terminal, or in a log, while it runs; and a command for what goes wrong with it."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from ..api.session import Session
    from ..core.model import RecordingData
    from ..live.messenger import Messenger
    from ..live.window import Window
    from ..reports.choices import Choices
    from .job import Ending, Job
    from .run import Live

_STANDARD_ERROR = 2


class Showing:
    """Prepared before the job starts; `say` receives what went wrong, after it has ended."""

    def __init__(self, live: Live, choices: Choices, say: Callable[[str], None]) -> None:
        self._live = live
        self._choices = choices
        self._say = say
        self._problems: list[str] = []
        self._messenger = None if live.notify is None else self._start_messenger(live.notify)

    def watch(self, session: Session, job: Job) -> Ending:
        """Show the job until it has ended."""
        window = self._open_window(session)
        if window is None:
            return job.wait()
        try:
            return job.wait(window)
        finally:
            window.close()
            self._problems.append(window.problem)

    def finish(self, session: Session, recording: RecordingData) -> None:
        """Tell what only the end has shown, and say why something was not shown, or nobody was told."""
        if self._messenger is not None:
            self._tell_rest(self._messenger, session, recording)
            self._problems.append(self._messenger.close())
        for problem in filter(None, self._problems):
            self._say(problem)

    def _tell_rest(self, messenger: Messenger, session: Session, recording: RecordingData) -> None:
        """A busy machine may not have looked since it happened, and some rules wait for the end."""
        from ..analysis.findings.finding import choose_new
        from ..api.reporting import report_session
        from ..core.errors import WRONG_DATA

        try:
            findings = report_session(session, recording, self._choices).findings
        except WRONG_DATA:
            return  # the report will say it
        for finding in choose_new(findings, messenger.told):
            messenger.tell(finding)

    def _start_messenger(self, command: str) -> Messenger | None:
        from ..live.messenger import Messenger

        try:
            return Messenger(command)
        except OSError as error:
            self._problems.append(f"--notify: no process can be started for it ({error.strerror}).")
            return None

    def _open_window(self, session: Session) -> Window | None:
        from ..live.window import Window  # the job runs already, and does not wait for these imports

        source = session.find_source()
        if source is None:
            return None
        fd = _STANDARD_ERROR if self._live.is_shown else None
        tell = None if self._messenger is None else self._messenger.tell
        try:
            return Window(source, self._choices, fd, self._live.seconds, tell)
        except (OSError, RuntimeError) as error:  # no thread can be started, or the terminal has gone
            self._problems.append(f"--live: {error}.")
            return None

"""The client's half of live views: a sampler that only takes observations.

No driver is loaded into the client's process, and a driver that hangs cannot block it.
"""

from __future__ import annotations

import time

from ...core.errors import TrackerError
from ...core.observation import SLOW
from ...core.values import NamedTuple
from .process import CRASH_HINT, READY_SECONDS, SamplerProcess, without_child_signals
from .wire import Request

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing_extensions import Self

    from ...core.observation import Observation

DEFAULT_PATIENCE_SECONDS = 10.0
SETTLE_SECONDS = 0.25
# What it takes besides the drivers, once the sampler is there.
_ANSWER_SECONDS = 2.0


class Question(NamedTuple):
    """A pending observation."""

    number: int
    deadline_seconds: float


class ObserverClient:
    """Takes observations through its own sampler process until closed."""

    def __init__(self, patience_seconds: float = DEFAULT_PATIENCE_SECONDS) -> None:
        self.patience_seconds = patience_seconds
        self._is_hanging = self._has_answered = False
        with without_child_signals():
            self._sampler = SamplerProcess()
            try:
                self._sampler.reap_starter()
            except BaseException:  # most likely Ctrl-C
                self._sampler.close()
                raise

    def observe(
        self,
        *,
        details: tuple[str, ...] = (),
        settle_seconds: float = SETTLE_SECONDS,
        root_pid: int | None = None,
        linger_seconds: float | None = None,
    ) -> Observation:
        """The present state of all devices and the machine."""
        question = self.ask(
            details=details,
            settle_seconds=settle_seconds,
            root_pid=root_pid,
            linger_seconds=linger_seconds,
        )
        left = question.deadline_seconds - time.monotonic()
        answer = self.take(question, timeout_seconds=left)
        if answer is None:
            raise TrackerError(f"The sampler did not answer within {left:.0f} s.")
        return answer

    def ask(
        self,
        *,
        details: tuple[str, ...] = (),
        settle_seconds: float = SETTLE_SECONDS,
        root_pid: int | None = None,
        linger_seconds: float | None = None,
    ) -> Question:
        """Ask without waiting; when `replies_fd` becomes readable there may be an answer to `take`."""
        ready_seconds = _ANSWER_SECONDS if self._has_answered else READY_SECONDS
        deadline = time.monotonic() + ready_seconds + self.patience_seconds + settle_seconds
        number = self._sampler.request(
            "observe", Request(self.patience_seconds, settle_seconds, details, root_pid, linger_seconds)
        )
        return Question(number, deadline)

    def take(self, question: Question, timeout_seconds: float = 0.0) -> Observation | None:
        """The answer, or None if there is none yet; raises if there never will be."""
        answer = self._sampler.receive("observation", question.number, timeout_seconds)
        if answer is None:
            if self._sampler.is_gone:
                why = self._sampler.failure or "it has ended"
                raise TrackerError(f"The sampler is not available any more: {why}.", CRASH_HINT)
            return None
        observation: Observation
        (observation,) = answer
        self._has_answered = True
        self._is_hanging = any(
            missing.kind == SLOW for vendor in observation.vendors for missing in vendor.missing
        )
        return observation

    @property
    def is_gone(self) -> bool:
        """Whether its sampler is not there any more; in a forked process it never is."""
        return self._sampler.is_gone

    @property
    def is_child(self) -> bool:
        """Whether its sampler is a child of this process, which must reap it."""
        return self._sampler.is_child

    @property
    def replies_fd(self) -> int:
        """A descriptor to poll."""
        return self._sampler.replies_fd

    def kill(self) -> None:
        """End the sampler even if somebody has stopped it."""
        self._sampler.kill()
        self._is_hanging = False

    def close(self) -> None:
        """End the sampler, without waiting for one whose driver hangs."""
        self._sampler.close()
        if not self._is_hanging:
            self._sampler.reap()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

"""A sampler that is only asked what it sees now: the asking half of `observe`.

No driver is ever loaded into the asking process, and none that hangs can hold it up.
"""

from __future__ import annotations

import time

from ...core.errors import TrackerError
from ...core.observation import SLOW
from ...core.values import NamedTuple
from .process import READY_SECONDS, SamplerProcess, without_child_signals
from .wire import Request

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType

    from typing_extensions import Self

    from ...core.observation import Observation

DEFAULT_PATIENCE_SECONDS = 10.0
SETTLE_SECONDS = 0.25


class Question(NamedTuple):
    """An observation that was asked for and has not come yet."""

    number: int
    deadline_seconds: float


class ObserverClient:
    """Ask as often as you like; close it, and its process is gone."""

    def __init__(self, patience_seconds: float = DEFAULT_PATIENCE_SECONDS) -> None:
        self._patience_seconds = patience_seconds
        self._is_hanging = False
        with without_child_signals():
            self._sampler = SamplerProcess()
            try:
                self._sampler.reap_starter()
            except BaseException:  # Ctrl-C, most likely
                self._sampler.close()
                raise

    def observe(self, *, wants_details: bool = False, settle_seconds: float = SETTLE_SECONDS) -> Observation:
        """Everything as it is now."""
        question = self.ask(wants_details=wants_details, settle_seconds=settle_seconds)
        left = question.deadline_seconds - time.monotonic()
        answer = self.take(question, timeout_seconds=left)
        if answer is None:
            raise TrackerError(f"The sampler has not answered within {left:.0f} s.")
        return answer

    def ask(self, *, wants_details: bool = False, settle_seconds: float = SETTLE_SECONDS) -> Question:
        """Ask without waiting; `replies_fd` becomes readable when there may be an answer to `take`."""
        deadline = time.monotonic() + READY_SECONDS + self._patience_seconds + settle_seconds
        number = self._sampler.request(
            "observe", Request(self._patience_seconds, settle_seconds, wants_details)
        )
        return Question(number, deadline)

    def take(self, question: Question, timeout_seconds: float = 0.0) -> Observation | None:
        """The answer, or None if there is none yet; raises if there will be none."""
        answer = self._sampler.receive("observation", question.number, timeout_seconds)
        if answer is None:
            if self._sampler.is_gone:
                why = self._sampler.failure or "it has ended"
                raise TrackerError(f"The sampler cannot be asked any more: {why}.")
            return None
        observation: Observation
        self._sampler.pid, observation = answer
        self._is_hanging = any(
            missing.kind == SLOW for vendor in observation.vendors for missing in vendor.missing
        )
        return observation

    @property
    def replies_fd(self) -> int:
        """For those who wait for several things at once."""
        return self._sampler.replies_fd

    def close(self) -> None:
        """Let the sampler go; one whose driver hangs may take its time, and nobody waits for it."""
        self._sampler.close()
        if not self._is_hanging:
            self._sampler.reap()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

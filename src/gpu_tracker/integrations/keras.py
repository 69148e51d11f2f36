"""A callback for `fit` of Keras 3. Importing this imports Keras."""

from __future__ import annotations

import sys

from keras.backend import backend
from keras.callbacks import Callback, CallbackList

from ..api.loops import BETWEEN_STEPS, EVALUATION, STEP, is_first_rank
from ..core.notices import warn_once
from .training import Training, harmless

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..api.tracker import Tracker

# With other backends a batch is fetched inside the step.
_FETCHES_BEFORE_STEP = ("torch",)
# Where Keras calls all callbacks in turn: it fetches a batch from the end of one of the former to the begin of one of the latter.
_BEFORE_FETCH, _AFTER_FETCH = (
    ("on_epoch_begin", "on_train_batch_end"),
    ("on_train_batch_begin", "on_test_begin", "on_epoch_end"),
)
_MOST_FRAMES = 8
_PACKAGE = "keras"


class TrackerCallback(Callback):
    """Marks epochs, steps, waiting for data, evaluation and checkpoints of a training, and logs its metrics.

    A tracker that is given is started and stopped with the training, and its findings are printed by rank 0. Without one, whatever
    tracks the program (a `Tracker` around it, `gpu-tracker run`) gets them. Metrics are logged at the end of each epoch, and every
    `log_every` batches: those of Keras are means since the begin of the epoch.
    """

    def __init__(
        self, tracker: Tracker | None = None, *, show_findings: bool = True, log_every: int = 50
    ) -> None:
        super().__init__()
        self._training = Training(tracker, show_findings=show_findings)
        self._loop = self._training.loop
        self._log_every = log_every
        self._n_steps = self._n_steps_before = 0

    @harmless
    def on_train_begin(self, logs: Any = None) -> None:
        """The first hook."""
        self._loop = self._training.begin(self.params, _PACKAGE)
        if backend() in _FETCHES_BEFORE_STEP:
            self._listen()
        else:
            warn_once(
                f"Keras waits for data inside its steps with {backend()}: the two cannot be told apart."
            )
        for name in ("save", "save_weights"):
            self._training.mark_saving(self.model, name)

    @harmless
    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        """The first batch is fetched after this."""
        self._n_steps_before = self._n_steps
        self._loop.begin_epoch()
        self._loop.go_to(BETWEEN_STEPS)

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        """The batch has come, if it is fetched before."""
        self._loop.go_to(STEP)

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """The next batch is fetched after this; its number is that of the last one in this call."""
        self._n_steps = self._n_steps_before + batch + 1
        if self._log_every and not (batch + 1) % self._log_every:
            self._log(logs)
        self._loop.go_to(BETWEEN_STEPS)

    @harmless
    def on_test_begin(self, logs: Any = None) -> None:
        """In an epoch, or outside."""
        self._training.begin_alone(EVALUATION, _PACKAGE)

    @harmless
    def on_test_end(self, logs: Any = None) -> None:
        """Nothing is fetched between this and the end of the epoch."""
        self._training.end_alone()

    @harmless
    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """With the metrics of its evaluation."""
        self._loop.go_to(None)
        self._log(logs)

    @harmless
    def on_train_end(self, logs: Any = None) -> None:
        """The last hook; there is none if the training fails."""
        self._training.end(is_first_rank=is_first_rank())

    @harmless
    def _listen(self) -> None:
        """Hooks of other callbacks come before and after ours, so only their list is next to the fetching of batches."""
        loop, all_callbacks = self._loop, _find_list(self)
        if all_callbacks is None:
            return
        for name in _BEFORE_FETCH:
            self._training.listen(all_callbacks, name, after=lambda *_, **__: loop.begin_wait())
        for name in _AFTER_FETCH:
            self._training.listen(all_callbacks, name, before=lambda *_, **__: loop.end_wait())

    @harmless
    def _log(self, logs: Any) -> None:
        if logs and is_first_rank():
            self._training.log(self._n_steps, logs)


def _find_list(callback: Callback) -> CallbackList | None:
    """The list that calls this callback: Keras tells nobody of it, but it is what runs."""
    frame = sys._getframe(1)  # noqa: SLF001 - it is there in CPython and PyPy
    for _ in range(_MOST_FRAMES):
        caller = frame.f_locals.get("self")
        if isinstance(caller, CallbackList) and any(one is callback for one in caller.callbacks):
            return caller
        if frame.f_back is None:
            break
        frame = frame.f_back
    return None

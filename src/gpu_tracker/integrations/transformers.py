"""A callback for the `Trainer` of Hugging Face Transformers. Importing this imports Transformers."""

from __future__ import annotations

from transformers import TrainerCallback

from ..api.loops import BETWEEN_STEPS, CHECKPOINT, EVALUATION, LOGGING, STEP
from .training import Training, harmless

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..api.regions import region
    from ..api.tracker import Tracker

_PACKAGE = "transformers"


class TrackerCallback(TrainerCallback):
    """Marks epochs, steps, waiting for data, evaluation and checkpoints of a training, and logs what the trainer logs.

    A tracker that is given is started and stopped with the training, and its findings are printed by rank 0. Without one, whatever
    tracks the program (a `Tracker` around it, `gpu-tracker run`) gets them. With gradient accumulation, a step is one of the optimizer, and
    all of its batches are waited for before it.
    """

    def __init__(self, tracker: Tracker | None = None, *, show_findings: bool = True) -> None:
        self._training = Training(tracker, show_findings=show_findings)
        self._loop = self._training.loop
        self._is_in_epoch = False

    @harmless
    def on_train_begin(
        self, args: Any, state: Any, control: Any, train_dataloader: Any = None, **_: Any
    ) -> None:
        """The first hook. No hook is next to the fetching of batches: in between are those of other callbacks."""
        self._loop = self._training.begin(state, _PACKAGE)
        self._training.mark_waiting(train_dataloader)

    @harmless
    def on_epoch_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """The first batches are fetched after this."""
        self._is_in_epoch = True
        self._loop.begin_epoch()
        self._loop.go_to(BETWEEN_STEPS)

    def on_step_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """All batches of the step have come."""
        self._loop.go_to(STEP)

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """The trainer logs, evaluates and saves, then fetches the next batches."""
        self._loop.go_to(_find_next(control) or BETWEEN_STEPS)

    @harmless
    def on_epoch_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """The same once more, but nothing is fetched."""
        self._is_in_epoch = False
        self._go_on(control)

    @harmless
    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
        """What is logged in an evaluation is part of it."""
        if state.is_world_process_zero and logs:
            self._training.log(state.global_step, logs)
        if self._loop.part is not EVALUATION:
            self._loop.rename_pause(LOGGING)
            self._go_on(control)

    @harmless
    def on_prediction_step(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """An evaluation that was not announced."""
        if self._training.is_on:
            self._loop.interrupt(EVALUATION)
        elif self._loop.part is not EVALUATION:
            self._training.begin_alone(EVALUATION, _PACKAGE)

    @harmless
    def on_evaluate(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """An evaluation is done."""
        self._go_on(control)

    @harmless
    def on_predict(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """So is a prediction."""
        self._go_on(control)

    @harmless
    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """A checkpoint is written; the best one of several is not announced."""
        self._loop.rename_pause(CHECKPOINT)
        self._go_on(control)

    @harmless
    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """The last hook; there is none if the training fails."""
        self._training.end(is_first_rank=state.is_world_process_zero)

    def _go_on(self, control: Any) -> None:
        if not self._training.is_on:
            self._training.end_alone()
            return
        self._loop.go_to(_find_next(control) or (BETWEEN_STEPS if self._is_in_epoch else None))


def _find_next(control: Any) -> region | None:
    """What the trainer does before it fetches the next batches, in its order."""
    if control.should_log:
        return LOGGING
    if control.should_evaluate:
        return EVALUATION
    return CHECKPOINT if control.should_save else None

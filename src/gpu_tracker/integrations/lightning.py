"""A callback for the trainers of Lightning. Importing this imports Lightning."""

from __future__ import annotations

try:
    from lightning.pytorch import Callback
except ImportError:  # under its older name
    from pytorch_lightning import Callback

from ..api.loops import BETWEEN_STEPS, EVALUATION, STEP
from .training import Training, harmless, is_excused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from ..api.tracker import Tracker

_STEP, _VALIDATION, _EPOCH = "step", "validation", "epoch"
# What Lightning tells its profilers, also of what no hook tells.
_EPOCH_ACTION, _FETCH_ACTION = "run_training_epoch", ".train_dataloader_next"
_PACKAGE = Callback.__module__.partition(".")[0]
_NOTHING: Mapping[str, Any] = {}


class TrackerCallback(Callback):
    """Marks epochs, steps, waiting for data, validation and checkpoints of a training, and logs its loss and metrics.

    A tracker that is given is started and stopped with the training, and its findings are printed by rank 0. Without one, whatever
    tracks the program (a `Tracker` around it, `gpu-tracker run`) gets them. Metrics are read as often as the trainer logs
    (`log_every_n_steps`), with or without a logger.
    """

    def __init__(self, tracker: Tracker | None = None, *, show_findings: bool = True) -> None:
        self._training = Training(tracker, show_findings=show_findings)
        self._loop = self._training.loop
        self._is_in_epoch = False
        self._unlogged: tuple[Any, int] | None = None
        """The loss of the last step, and by what it was divided, unless it is logged."""
        self._stages: dict[str, str] = {}
        """When each metric was first seen."""

    @harmless
    def setup(self, trainer: Any, pl_module: Any, stage: str) -> None:
        """The first hook that runs in the process which trains."""
        if stage == "fit":
            self._loop = self._training.begin(trainer, _PACKAGE)
            self._training.mark_saving(trainer, "save_checkpoint")
            self._training.listen(trainer.profiler, "start", after=self._begin_action)
            self._training.listen(trainer.profiler, "stop", before=self._end_action)

    @harmless
    def on_train_epoch_start(self, trainer: Any, pl_module: Any) -> None:
        """Not of one that is resumed in its middle."""
        self._begin_epoch()

    def on_train_batch_start(self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int) -> None:
        """The batch has come."""
        self._loop.go_to(STEP)

    def on_train_batch_end(
        self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Hooks of other callbacks and of the module follow, then the next batch is fetched, unless there is none."""
        try:  # what `harmless` does, without the cost of a call in every step
            every = trainer.log_every_n_steps
            if every:
                self._unlogged = _find_loss(outputs), _find_divisor(trainer, pl_module)
                is_turn = trainer._logger_connector.should_update_logs  # noqa: SLF001 - what its loggers go by
                if trainer.is_last_batch or is_turn:
                    self._log_step(trainer, _find_step(trainer), is_turn=is_turn)
        except Exception as error:
            if not is_excused(error, "on_train_batch_end"):
                raise
        self._loop.go_to(BETWEEN_STEPS)

    @harmless
    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        """Metrics of the epoch are known by now. It may have ended early, after any step."""
        self._is_in_epoch = False
        last = _find_step(trainer) - 1
        self._log_step(trainer, last, is_turn=False)
        self._log(trainer, _EPOCH, last)
        self._loop.go_to(None)

    @harmless
    def on_validation_start(self, trainer: Any, pl_module: Any) -> None:
        """In the middle of an epoch, at its end or outside."""
        self._loop.interrupt(EVALUATION)
        self._claim(trainer, _STEP)

    @harmless
    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
        """Training goes on, if there is more in this epoch."""
        if not trainer.sanity_checking:
            self._log(trainer, _VALIDATION, _find_step(trainer))
        is_more = self._is_in_epoch and self._training.is_on
        self._loop.go_to(BETWEEN_STEPS if is_more else None)

    @harmless
    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        """No other hook follows."""
        self._training.end(is_first_rank=trainer.is_global_zero)

    @harmless
    def teardown(self, trainer: Any, pl_module: Any, stage: str) -> None:
        """The last hook."""
        self._training.end(is_first_rank=trainer.is_global_zero)

    @harmless
    def _begin_action(self, action_name: str) -> None:
        """An epoch begins with making its loader begin."""
        if action_name == _EPOCH_ACTION and not self._is_in_epoch:
            self._begin_epoch()
        if action_name == _EPOCH_ACTION or action_name.endswith(_FETCH_ACTION):
            self._loop.begin_wait()

    @harmless
    def _end_action(self, action_name: str) -> None:
        if action_name.endswith(_FETCH_ACTION):
            self._loop.end_wait()

    def _begin_epoch(self) -> None:
        self._is_in_epoch = True
        self._loop.begin_epoch()
        self._loop.go_to(BETWEEN_STEPS)

    def _log_step(self, trainer: Any, step: int, *, is_turn: bool) -> None:
        """The loss once; the module's own values only when they go to its loggers."""
        if self._unlogged is None:
            return
        (loss, divisor), self._unlogged = self._unlogged, None
        values = {} if loss is None else {"loss": loss if divisor == 1 else loss * divisor}
        if is_turn and not _is_accumulating(trainer):
            self._log(trainer, _STEP, step, values)
        elif trainer.is_global_zero:
            self._claim(trainer, _STEP)
            self._training.log(step, values)

    def _log(self, trainer: Any, stage: str, step: int, values: Mapping[str, Any] = _NOTHING) -> None:
        """The values of this stage: the trainer keeps those of other stages beside them."""
        metrics = self._claim(trainer, stage)
        own = {name: value for name, value in metrics.items() if self._stages[name] == stage}
        if trainer.is_global_zero:
            self._training.log(step, {**values, **own})

    def _claim(self, trainer: Any, stage: str) -> Mapping[str, Any]:
        """All metrics; those that are new belong to this stage from now on."""
        metrics: Mapping[str, Any] = trainer.callback_metrics
        for name in metrics:
            self._stages.setdefault(name, stage)
        return metrics


def _find_step(trainer: Any) -> int:
    """As Lightning's loggers count: from 0, and the same for all batches of an optimizer step."""
    return int(trainer.fit_loop.epoch_loop._batches_that_stepped)  # noqa: SLF001 - no public name has it


def _is_accumulating(trainer: Any) -> bool:
    """Whether the gradients of this batch wait for those of others: then nothing goes to the loggers."""
    is_automatic = trainer.lightning_module.automatic_optimization
    return bool(is_automatic and trainer.fit_loop._should_accumulate())  # noqa: SLF001


def _find_divisor(trainer: Any, module: Any) -> int:
    """By what Lightning has divided the loss, for the gradients of several batches, also of fewer at the end of an epoch."""
    return int(trainer.accumulate_grad_batches) if module.automatic_optimization else 1


def _find_loss(outputs: Any) -> Any:
    """The loss that `training_step` has returned, if any."""
    return outputs.get("loss") if hasattr(outputs, "get") else outputs

"""What the callbacks share: a failure of ours is said and goes no further, and a tracker begins and ends with the training."""

from __future__ import annotations

import copy
import gc
import logging
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import gpu_tracker as gput
from gpu_tracker.api.loops import BETWEEN_STEPS, CHECKPOINT, DATA_WAIT, EVALUATION, STEP
from gpu_tracker.integrations.training import Training, harmless


@pytest.fixture(autouse=True)
def _collect_garbage() -> Iterator[None]:
    """Regions inside each other know each other; with them, what they have mapped is closed."""
    yield
    gc.collect()


class Framework:
    """Anything that saves."""

    def __init__(self) -> None:
        self.saved: list[str] = []

    def save(self, path: str) -> str:
        """To a file, if that is possible."""
        if path == "full":
            raise OSError(path)
        self.saved.append(path)
        return path


def make_training(**options: Any) -> tuple[Training, gput.Tracker]:
    """With a tracker of its own."""
    tracker = gput.Tracker(disable_logs=True, **options)
    return Training(tracker, show_findings=True), tracker


def regions_in(path: Path) -> dict[str, int]:
    """Calls by path."""
    return {"/".join(region.path): region.calls for region in gput.load(path).regions}


def test_a_hook_that_fails_says_so_once(caplog: pytest.LogCaptureFixture) -> None:
    """Whatever a framework has changed."""

    @harmless
    def on_something(trainer: Any) -> None:
        trainer.was_renamed()

    with caplog.at_level(logging.WARNING, "gpu_tracker"):
        for _ in range(3):
            on_something(object())

    assert caplog.text.count("on_something: AttributeError: 'object' object has no attribute") == 1


def test_what_interrupts_a_training_reaches_it() -> None:
    """Ctrl-C is none of our failures."""

    @harmless
    def on_something() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        on_something()


def test_a_tracker_is_started_and_stopped_with_the_training() -> None:
    """Also if the last training had failed without a hook, and if a training ends twice."""
    training, tracker = make_training()

    training.begin()
    training.loop.begin_epoch()
    training.begin()
    assert tracker.state.name == "STARTED"
    training.end(is_first_rank=True)
    training.end(is_first_rank=True)

    assert tracker.state.name == "STOPPED"
    assert tracker.report is not None
    assert tracker.report.regions == ()


def make_fit(training: Training, then: Any) -> Any:
    """The function of a framework that calls us, and does something in a step."""
    names = {"__name__": "framework.trainer", "training": training, "then": then, "STEP": STEP}
    body = "training.begin(None, 'framework'); training.loop.begin_epoch(); training.loop.go_to(STEP); then()"
    exec(f"def fit(): {body}", names)
    return names["fit"]


def fail() -> None:
    """Any training may."""
    raise ValueError("broken")


def test_a_training_that_fails_leaves_no_region_open(tmp_path: Path) -> None:
    """Neither for what follows under the same tracker, nor under a later one."""
    training, first, second = Training(None, show_findings=False), tmp_path / "1.jsonl", tmp_path / "2.jsonl"
    with gput.Tracker(disable_logs=True, record=first):
        with pytest.raises(ValueError, match="broken"):
            make_fit(training, fail)()
        with gput.region("mine"):
            pass
        with pytest.raises(ValueError, match="broken") as kept:
            make_fit(training, fail)()
    with gput.Tracker(disable_logs=True, record=second), gput.region("mine"):
        pass

    assert kept.value is not None
    assert not training.is_on
    assert regions_in(first) == {"epoch": 1, "epoch/step": 1, "mine": 1}
    assert regions_in(second) == {"mine": 1}


@pytest.mark.parametrize("is_kept", [False, True])
def test_a_training_that_fails_stops_its_tracker(is_kept: bool) -> None:
    """At once, or when the next one begins; what was open stays open."""
    training, tracker = make_training()
    with pytest.raises(ValueError, match="broken") as caught:
        make_fit(training, fail)()
    if is_kept:
        with gput.Tracker(disable_logs=True):
            pass
        assert caught.value is not None
    else:
        del caught

    assert tracker.state.name == "STOPPED"
    assert tracker.report is not None
    assert tracker.report.ending == "raised"
    assert [(region.path, region.open_calls) for region in tracker.report.regions] == [
        (("epoch",), 1),
        (("epoch", "step"), 1),
    ]


def test_a_tracker_that_the_user_has_stopped_is_not_stopped_again() -> None:
    """After a failure, before we know of it."""
    training, tracker = make_training()
    with pytest.raises(ValueError, match="broken") as caught:
        make_fit(training, fail)()
    tracker.stop()
    del caught

    assert not training.is_on
    assert tracker.report is not None
    assert tracker.report.ending == "stopped"


def test_an_evaluation_outside_of_a_training_leaves_no_region_open(tmp_path: Path) -> None:
    """Whether it fails or not."""
    training, path = Training(None, show_findings=False), tmp_path / "run.jsonl"
    names = {"__name__": "framework.trainer", "training": training, "EVALUATION": EVALUATION}
    exec(
        "def evaluate(then):\n training.begin_alone(EVALUATION, 'framework')\n then()\n training.end_alone()",
        names,
    )
    evaluate: Any = names["evaluate"]
    with gput.Tracker(disable_logs=True, record=path):
        for then in (fail, dict):
            try:
                evaluate(then)
            except ValueError:
                pass
            with gput.region("mine"):
                pass

    assert regions_in(path) == {"evaluation": 2, "mine": 2}


def test_a_tracker_that_runs_already_is_the_users() -> None:
    """Who has started it also stops it."""
    training, tracker = make_training()

    with tracker:
        training.begin()
        training.end(is_first_rank=True)
        assert tracker.state.name == "STARTED"

    assert tracker.state.name == "STOPPED"


def test_a_checkpoint_is_no_wait(tmp_path: Path) -> None:
    """Between steps it stands for itself; in a step it is a part of it; afterwards nothing is marked."""
    training, framework = Training(None, show_findings=True), Framework()
    path = tmp_path / "run.jsonl"
    with gput.Tracker(disable_logs=True, record=path):
        training.begin()
        training.mark_saving(framework, "save")
        training.loop.begin_epoch()
        training.loop.go_to(BETWEEN_STEPS)
        assert framework.save("a") == "a"
        assert training.loop.part is BETWEEN_STEPS
        with pytest.raises(OSError, match="full"):
            framework.save("full")
        training.loop.go_to(STEP)
        framework.save("b")
        training.end(is_first_rank=True)
        framework.save("c")

    assert framework.saved == ["a", "b", "c"]
    assert vars(framework).keys() == {"saved"}
    assert regions_in(path) == {
        "epoch": 1,
        "epoch/between_steps": 3,
        "epoch/checkpoint": 2,
        "epoch/step": 1,
        "epoch/step/checkpoint": 1,
    }


def test_what_was_no_pause_is_not_renamed(tmp_path: Path) -> None:
    """Only what is between steps is a guess."""
    training, path = Training(None, show_findings=False), tmp_path / "run.jsonl"
    training.loop.rename_pause(CHECKPOINT)
    with gput.Tracker(disable_logs=True, record=path):
        training.loop.go_to(STEP)
        training.loop.rename_pause(CHECKPOINT)
        training.loop.interrupt(CHECKPOINT)
        training.loop.end()

    assert regions_in(path) == {"step": 1, "checkpoint": 1}


class Loader:
    """Batches, and where the training was when each was made."""

    def __init__(self, training: Training, n: int) -> None:
        self.training, self.n = training, n
        self.parts: list[Any] = []

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        """It passes for another one, as those of accelerate do."""
        return list

    def __iter__(self) -> Iterator[int]:
        for number in range(self.n):
            self.parts.append(self.training.loop.part)
            yield number
        if self.n == 0:
            raise OSError("broken")


def test_only_the_time_in_a_loader_is_a_wait(tmp_path: Path) -> None:
    """Not what is done before and after it; in a step it is a part of that. Afterwards the loader is as it was."""
    training, path = Training(None, show_findings=False), tmp_path / "run.jsonl"
    loader, broken = Loader(training, 3), Loader(training, 0)
    with gput.Tracker(disable_logs=True, record=path):
        training.begin()
        training.mark_waiting(loader)
        training.mark_waiting(broken)
        training.loop.begin_epoch()
        training.loop.go_to(BETWEEN_STEPS)
        batches = iter(loader)
        assert type(loader).__name__ == "Loader"
        assert [type(copy.copy(loader)), vars(copy.copy(loader))] == [Loader, vars(loader)]
        assert [next(batches), next(batches)] == [0, 1]
        assert training.loop.part is BETWEEN_STEPS
        training.loop.go_to(STEP)
        assert next(batches) == 2
        training.loop.go_to(BETWEEN_STEPS)
        assert list(batches) == []
        with pytest.raises(OSError, match="broken"):
            list(broken)
        assert batches.gi_frame is None  # type: ignore[attr-defined] # an attribute of the generator
        training.end(is_first_rank=True)

    assert type(loader) is Loader
    assert loader.parts == [DATA_WAIT, DATA_WAIT, STEP]
    assert regions_in(path)["epoch/data_wait"] == 1 + 2 + 1 + 2


@pytest.mark.parametrize("loader", [None, [1, 2], object()])
def test_a_loader_that_cannot_be_observed_is_left_alone(loader: Any) -> None:
    """Between steps is what is between steps, then."""
    training, kind = Training(None, show_findings=False), type(loader)
    training.begin()
    training.mark_waiting(loader)

    assert type(loader) is kind
    training.end(is_first_rank=True)


def test_a_method_is_listened_to_until_the_training_ends() -> None:
    """Also when it fails; before it or after it."""
    training, framework, heard = Training(None, show_findings=False), Framework(), list[str]()
    training.begin()
    training.listen(framework, "save", before=lambda path: heard.append(f"before {path}"))
    training.listen(framework, "save", after=lambda path: heard.append(f"after {path}"))
    framework.save("a")
    with pytest.raises(OSError, match="full"):
        framework.save("full")
    training.end(is_first_rank=True)
    framework.save("b")

    assert heard == ["before a", "after a", "before full", "after full"]
    assert vars(framework).keys() == {"saved"}


def test_values_that_are_no_numbers_are_left_out(tmp_path: Path) -> None:
    """A framework logs names and states, too."""
    path = tmp_path / "run.jsonl"
    with gput.Tracker(disable_logs=True, record=path):
        training = Training(None, show_findings=True)
        training.log(3, {"loss": 0.5, "model": "small", "step": 9, "best": None})
        training.log(4, {"model": "small"})

    assert [(row.step, row.values) for row in gput.load(path).metric_rows] == [(3, {"loss": 0.5})]


@pytest.mark.parametrize("make_copy", [copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
@pytest.mark.parametrize("has_ended", [True, False])
def test_a_callback_can_be_copied(make_copy: Any, has_ended: bool) -> None:
    """Without the tracker that has begun; a copy has begun nothing, and can begin."""
    training, _ = make_training()
    training.begin()
    training.loop.go_to(STEP)
    if has_ended:
        training.end(is_first_rank=False)
    loop, copied = make_copy((training.loop, training))

    assert copied.loop is loop
    assert loop.part is None
    copied.begin()
    copied.end(is_first_rank=True)
    training.end(is_first_rank=False)


def test_a_callback_that_was_not_used_is_copied_with_its_tracker(tmp_path: Path) -> None:
    """As when workers that train are spawned."""
    training, _ = make_training(record=tmp_path / "run.jsonl")
    copied = pickle.loads(pickle.dumps(training))

    copied.begin()
    copied.end(is_first_rank=False)

    assert (tmp_path / "run.jsonl").exists()


def test_of_two_callbacks_in_a_training_one_does_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It is said once; in a training without the other one it works."""
    run, framework, path = object(), Framework(), tmp_path / "run.jsonl"
    (second, tracker), first = make_training(), Training(None, show_findings=False)

    def train(*trainings: Training) -> None:
        for training in trainings:
            training.begin(run)
            training.mark_saving(framework, "save")
            training.loop.begin_epoch()
            training.loop.go_to(STEP)
        framework.save("a")
        for training in trainings:
            training.log(1, {"loss": 1.0})
            training.end(is_first_rank=False)

    with caplog.at_level(logging.WARNING, "gpu_tracker"), gput.Tracker(disable_logs=True, record=path):
        train(first, second)
        assert tracker.state.name == "NEW"
        train(first, second)
        train(second)

    assert tracker.state.name == "STOPPED"
    assert regions_in(path) == {"epoch": 2, "epoch/step": 2, "epoch/step/checkpoint": 2}
    assert [row.values for row in gput.load(path).metric_rows] == [{"loss": 1.0}] * 2
    assert caplog.text.count("several TrackerCallbacks") == 1
    assert vars(framework).keys() == {"saved"}

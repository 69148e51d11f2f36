"""`experiment()`: what a block used, and what is left of it, in programs of their own."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from framework_job import PRELUDE
from gpu_tracker.analysis.cells import CellUse
from gpu_tracker.core.model import Survivor
from gpu_tracker.reports.experiment import ExperimentReport
from gpu_tracker.reports.memory import Step
from nvml_simulator import Simulator

PROGRAM = Path(__file__).with_name("experimenting.py")


@pytest.fixture(scope="module")
def done() -> Any:
    """The program, run once: what it printed, and what it told."""
    result = subprocess.run([sys.executable, str(PROGRAM)], capture_output=True, text=True, check=True)
    return result.stdout, json.loads(result.stderr)


def read(plain: list[Any]) -> ExperimentReport:
    """A report from JSON."""
    report = ExperimentReport(*plain)
    return report._replace(
        use=CellUse(*plain[1]), survivors=tuple(Survivor(*one) for one in report.survivors)
    )


def test_variables_of_the_block_are_deleted_but_for_those_kept(done: Any) -> None:
    """Not what was there before, not modules and functions, not names with an underscore."""
    _, told = done
    report = read(told["first"])

    assert told["names"] == ["score", "before", "decimal", "tool", "_hidden"]
    assert list(report.deleted or ()) == ["data", "text"]
    assert list(report.kept) == ["score"]


def test_what_is_still_held_is_named_with_its_holder(done: Any) -> None:
    """Objects that can be followed, and large ones that cannot."""
    _, told = done
    survivors = {one.name: one for one in read(told["first"]).survivors}

    assert {name: one.holder for name, one in survivors.items()} == {
        "data": "cache['data']",
        "text": "cache['text'][0]",
    }
    assert survivors["text"].size_bytes == 50_000_033


def test_what_it_used_is_measured_by_a_tracker(done: Any) -> None:
    """What it left in memory, and printed at once."""
    printed, told = done
    report = read(told["first"])

    assert report.use is not None
    assert 148_000_000 < report.use.ram_bytes < 165_000_000
    assert report.use.peak_ram_bytes > report.use.ram_bytes
    assert printed.splitlines()[0].startswith("experiment a: RAM +1")
    assert len(printed.splitlines()) == 5


def test_what_nobody_holds_is_given_back(done: Any) -> None:
    """And nothing is said to be left; a quiet one prints nothing."""
    printed, told = done
    report = read(told["second"])

    assert (report.survivors, report.more) == ((), 0)
    assert 95_000_000 < told["second"][4][2] < 110_000_000
    assert "clean" not in printed


def test_in_a_function_it_only_measures(done: Any) -> None:
    """Its variables are its own."""
    plain, is_there = done[1]["third"]
    report = read(plain)

    assert is_there
    assert report.deleted is None
    assert report.use is not None


def test_an_error_goes_on_and_its_traceback_is_named(done: Any) -> None:
    """Variables of the block are deleted, those of the function are in the traceback."""
    _, told = done
    report = read(told["fourth"])

    assert told["error"] == "no"
    assert report.use is not None
    assert report.use.ending == "raised"
    assert list(report.deleted or ()) == ["local", "other"]
    assert report.survivors == ()


def test_it_is_a_region_of_the_trackers_around_it(done: Any) -> None:
    """So it is in their reports."""
    assert done[1]["regions"] == [["inner"]]


def test_wrong_names_are_explained(done: Any) -> None:
    """One text is not several."""
    assert done[1]["wrong"] == [
        "keep='model' is one text. Give the names of variables: keep=('model',).",
        'keep takes the names of variables, not int. For example keep=("model",).',
    ]


HIDDEN = """
import json, gpu_tracker as gput
class Slots:
    __slots__ = ("content",)
class Box:
    pass
def generate():
    content = bytearray(5_000_000)
    while True:
        yield content
kept, results, before = [], {}, bytearray(90_000_000)
with gput.experiment("a", keep=("acuracy",), quiet=True) as done:
    slots, box, made, text = Slots(), Box(), generate(), "x" * 8_000_000
    slots.content, box.content, box.data = bytearray(7_000_000), bytearray(6_000_000), before
    next(made)
    kept += [slots, box, made]
    results["text"] = text
    one = other = [bytes(4_000_000)]
    kept.append(one)
    accuracy = 1.0
print(json.dumps(done.report))
print(done.report)
"""


def test_what_holds_much_is_listed_by_all_that_it_holds() -> None:
    """Once, also if it cannot be followed, or is in what the collector does not follow; without what was there before."""
    done = subprocess.run([sys.executable, "-c", HIDDEN], capture_output=True, text=True, check=True)
    plain, *lines = done.stdout.splitlines()
    report = read(json.loads(plain))

    assert [(one.name, one.kind, one.holder) for one in report.survivors] == [
        ("text", "str", "results['text']"),
        ("slots", "Slots", "kept[0]"),
        ("box", "Box", "kept[1]"),
        ("made", "generator", "kept[2]"),
        ("other", "list", "kept[3]"),
    ]
    assert [round(one.size_bytes, -6) for one in report.survivors] == [
        size * 1_000_000 for size in (8, 7, 6, 5, 4)
    ]
    assert list(report.missing) == ["acuracy"]
    assert "  to be kept, but there is no such variable: acuracy" in lines


ODD = """
import gc, sys, weakref, gpu_tracker as gput
class Thing:
    pass
class NotYet:
    @property
    def __class__(self):
        raise RuntimeError("outside of a context")
thing = Thing()
gone, later = weakref.proxy(thing), NotYet()
del thing
with gput.experiment("odd", quiet=True) as odd:
    thing = Thing()
    other, third = weakref.proxy(thing), NotYet()
    del thing
    data = [other, third, bytearray(5_000_000)]
    held = NotYet()
    held.content = data
    _kept = [held]
print(odd.report.deleted, [one.holder for one in odd.report.survivors])
class Body:
    with gput.experiment(""):
        inside = 1
print(hasattr(Body, "inside"))
class Closed:
    encoding = "ascii"
    def write(self, text):
        raise BrokenPipeError("gone")
    flush = write
class Narrow(Closed):
    def write(self, text):
        text.encode("ascii")
        out.write(text)
out, sys.stdout = sys.stdout, Closed()
try:
    with gput.experiment("fails"):
        raise ValueError("mine")
except ValueError as error:
    told = str(error)
sys.stdout = Narrow()
with gput.experiment("é"):
    pass
sys.stdout = out
print(told)
"""


def test_odd_objects_and_outputs_do_no_harm() -> None:
    """Objects that raise when they are looked at, bodies of classes, and outputs that are closed or narrow."""
    done = subprocess.run([sys.executable, "-c", ODD], capture_output=True, text=True, check=True)
    odd, unnamed, *_, narrow, _deleted, _given, told = done.stdout.splitlines()

    assert odd == "('other', 'third', 'data', 'held') ['_kept[0]', '_kept[0].content', '_kept[0].content[1]']"
    assert unnamed.startswith("experiment: ")
    assert "  deleted: inside" in done.stdout
    assert "False" in done.stdout.splitlines()
    assert narrow.startswith("experiment \\xe9: ")
    assert told == "mine"
    assert "BrokenPipeError: gone" in done.stderr


FRAME = """
import json, pandas, gpu_tracker as gput
kept = []
with gput.experiment("a", quiet=True) as done:
    frame = pandas.DataFrame({"x": range(1_000_000)})
    kept.append(frame)
print(json.dumps(done.report))
"""


def test_what_knows_its_whole_size_is_counted_once() -> None:
    """As a data frame does."""
    pytest.importorskip("pandas")
    done = subprocess.run([sys.executable, "-c", FRAME], capture_output=True, text=True, check=True)
    (survivor,) = read(json.loads(done.stdout)).survivors

    assert 8_000_000 <= survivor.size_bytes < 9_000_000
    assert survivor.holder == "kept[0]"


REAL_TORCH = """
import json, torch, gpu_tracker as gput
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(1000, 1000)
        self.circle = [self]
    def forward(self, x):
        return self.layer(x)
cache, losses, batches = {}, [], []
with gput.experiment("a", keep=("model",), quiet=True) as done:
    model, gone = Model(), Model()
    x = torch.zeros(20_000_000)
    y = torch.ones(10_000_000)
    cache["y"] = [0, y]
    batch = [torch.ones(1000)]
    batches.extend(batch)
    loss = model(batch[0]).sum()
    loss.backward()
    gone(batch[0]).sum().backward()
    losses.append(loss)
print(json.dumps([done.report, torch.cuda.is_initialized(), model.layer.weight.grad is not None]))
"""


@pytest.mark.skipif(
    importlib.util.find_spec("torch") is None, reason="torch is not installed (make test WITH=frameworks)"
)
def test_tensors_that_somebody_keeps_are_found() -> None:
    """Also one whose list is gone; those of a kept model with its gradients are no survivors, a model in a circle is freed."""
    done = subprocess.run([sys.executable, "-c", REAL_TORCH], capture_output=True, text=True, check=True)
    plain, is_initialized, has_gradient = json.loads(done.stdout)
    report = read(plain)

    assert [tuple(one) for one in report.survivors] == [
        ("y", "Tensor", 40_000_000, "cache['y'][1]"),
        (None, "Tensor", 4000, "batches[0]"),
        ("loss", "Tensor", 4, "losses[0]"),
    ]
    assert (is_initialized, has_gradient) == (False, True)


WITH_VIEWS = """
import json, gpu_tracker as gput
import numpy as np, torch
views = []
with gput.experiment("a", keep=("sample",), quiet=True) as done:
    whole, listed, twice, shared, numbers, alone = (np.ones(n) for n in (600_000, 500_000, 400_000, 300_000, 200_000, 100_000))
    tensor = torch.ones(10_000)
    sample = whole[:10]
    views += [{"x": listed[:10]}, twice[:100][:10], torch.from_numpy(shared), tensor[:5], tensor.numpy()]
    own = numbers[1:]
    views.append(numbers[:1])
    kept_by_none = alone[:1]
print(json.dumps([[one.name, one.holder] for one in done.report.survivors if one.name]))
"""


@pytest.mark.skipif(
    importlib.util.find_spec("torch") is None, reason="torch is not installed (make test WITH=frameworks)"
)
def test_a_view_is_what_holds_an_array() -> None:
    """The collector does not know; what has the same numbers, but was not made from it, does not hold it."""
    done = subprocess.run([sys.executable, "-c", WITH_VIEWS], capture_output=True, text=True, check=True)

    assert dict(json.loads(done.stdout)) == {
        "whole": "sample",
        "listed": "views[0]['x']",
        "twice": "views[1]",
        "shared": "views[2]",
        "numbers": "views[5]",
        "tensor": "views[3]",
    }


DECORATED = """
import functools, json, gpu_tracker as gput
class Named:
    def __call__(self): pass
    def __getattr__(self, name): raise ValueError(name)
with gput.experiment("a", quiet=True) as done:
    @functools.lru_cache
    def cached(x): return x
    part = functools.partial(cached, 1)
    @functools.singledispatch
    def chosen(x): return x
    odd, data = Named(), [1]
    method = data.__len__.__self__.copy
    bound = json.JSONEncoder().encode
print(json.dumps(sorted(done.report.deleted)))
"""


def test_what_a_decorator_makes_of_a_function_is_one() -> None:
    """It stays; an object that can be called does not, nor does a method, which keeps its object."""
    done = subprocess.run([sys.executable, "-c", DECORATED], capture_output=True, text=True, check=True)

    assert json.loads(done.stdout) == ["bound", "data", "odd"]


ON_GPU = """
import torch
hold(1000, 1000)
class Tensor:
    def __del__(self):
        torch.cuda.hold(0, 1000 * MIB, 3000 * MIB)
with gput.experiment("gpu", quiet=True) as done:
    tensor = Tensor()
    time.sleep(1)
    hold(5000, 5000)
    time.sleep(1)
    time.sleep(0.6)
    hold(3000, 3000)
print(json.dumps(done.report))
"""


@pytest.mark.parametrize("delay_milliseconds", [0, 300])
def test_gpu_memory_is_measured_and_no_cache_emptied(hardware: Simulator, delay_milliseconds: int) -> None:
    """What the block left there and its peak by the driver, also a slow one; what deleting gave back by the framework."""
    hardware.delay("nvmlInit*", delay_milliseconds)
    done = subprocess.run(
        [sys.executable, "-c", f"{PRELUDE}{ON_GPU}"],
        env={**os.environ, **hardware.environment()},
        capture_output=True,
        text=True,
        check=True,
    )
    report = read(json.loads(done.stdout))
    step = Step(*report.given_back or ("", 0, 0, 0, 0))

    assert report.use is not None
    assert (report.use.gpu_bytes, report.use.peak_gpu_bytes) == (2000 * 2**20, 5600 * 2**20)
    assert (step.tensors_bytes, step.gpu_bytes) == (2000 * 2**20, 0)

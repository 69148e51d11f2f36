"""Notebooks in real kernels: what their cells show, and that they run as without us."""

from __future__ import annotations

import base64
import re
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from gpu_tracker.integrations.ipython import Running

pytest.importorskip("nbclient", reason="nbclient is not installed (WITH=notebook)")
pytest.importorskip("ipykernel", reason="ipykernel is not installed (WITH=notebook)")
nbformat = import_module("nbformat")

Run = Callable[..., Any]
RUNNER = Path(__file__).with_name("run_notebook.py")
EXAMPLES = sorted((Path(__file__).parents[2] / "examples/notebooks").glob("*.ipynb"))
# What is to be read in their outputs.
PROMISES = {
    "find_what_a_cell_costs": ["cell 3: RAM +", "checksum"],
    "memory_of_pytorch": [
        "not freed: loss (Tensor, 4 B), held by history[0]",
        "frames of the last traceback: RAM 1",
    ],
    "monitor_training": ["cell 5: RAM +", "('epoch',) 400"],
}
START = "import time, gpu_tracker as gput\nt = gput.Tracker(sleep_time=0.05, live=True)\nt.start()"
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs cells one after the other in a kernel of their own."""
    for variable in ("IPYTHONDIR", "JUPYTER_RUNTIME_DIR", "JUPYTER_DATA_DIR", "JUPYTER_CONFIG_DIR"):
        monkeypatch.setenv(variable, str(tmp_path / variable))
    monkeypatch.delenv("JPY_SESSION_NAME", raising=False)

    def run_cells(*sources: str, code: int = 0) -> Any:
        cells = [nbformat.v4.new_code_cell(source) for source in sources]
        source, target = tmp_path / "in.ipynb", tmp_path / "out.ipynb"
        nbformat.write(nbformat.v4.new_notebook(cells=cells), source)
        options = ["--allow-errors"] if not code else []
        command = [sys.executable, str(RUNNER), str(source), str(target), *options]
        result = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
        assert result.returncode == code, result.stderr
        return nbformat.read(target, 4)

    return run_cells


def shown(cell: Any) -> dict[str, str]:
    """The only output of a cell that is no stream and no error."""
    (output,) = [one for one in cell.outputs if one.output_type in ("display_data", "execute_result")]
    data: dict[str, str] = output.data
    return data


def printed(cell: Any) -> str:
    """What a cell has printed; warnings are elsewhere."""
    return "".join(one.text for one in cell.outputs if one.output_type == "stream" and one.name == "stdout")


def picture_in(html: str) -> ET.Element:
    """The SVG inside."""
    found = re.findall(r'src="data:image/svg\+xml;base64,([^"]*)"', html)
    assert len(found) == 1
    return ET.fromstring(base64.b64decode(found[0]))


def words_in(html: str) -> str:
    """All text of the picture."""
    return " ".join(element.text or "" for element in picture_in(html).iter(f"{SVG}text"))


def test_a_picture_is_drawn_from_one_cell_to_another(run: Run) -> None:
    """Started in one cell, stopped in a later one; the output of the first is the final one, and the only one."""
    notebook = run(START, "sum(range(10**7)); time.sleep(2.5)", "t.stop()")
    data = shown(notebook.cells[0])

    assert re.match(r"notebook cell 1: finished, \S+ s; ", data["text/plain"])
    assert "CPU, cores in use" in words_in(data["text/html"])
    assert "RAM of the job" in words_in(data["text/html"])
    assert all(output.output_type == "stream" for cell in notebook.cells[1:] for output in cell.outputs)


def test_the_picture_is_drawn_while_a_cell_runs(run: Run) -> None:
    """The thread updates the output: what is saved before the end shows a run that goes on."""
    wait = (
        "from IPython import get_ipython\n"
        "seen = []\n"
        "publish = get_ipython().display_pub.publish\n"
        "get_ipython().display_pub.publish = lambda data, *a, **k: (seen.append(data['text/plain']), publish(data, *a, **k))\n"
        "deadline = time.monotonic() + 60\n"
        "while len(seen) < 2 and time.monotonic() < deadline: time.sleep(0.1)\n"
        "print(seen[0])"
    )
    notebook = run(START, wait)

    assert printed(notebook.cells[1]).startswith("notebook cell 1: still running, ")
    assert "still running" in shown(notebook.cells[0])["text/plain"]


def test_an_error_in_a_cell_stays_an_error(run: Run) -> None:
    """And the picture says so."""
    code = "import gpu_tracker as gput\nwith gput.Tracker(live=True):\n    1 / 0"
    notebook = run(code, "print('not reached')", code=1)

    assert "ended by an exception" in shown(notebook.cells[0])["text/plain"]
    assert [one.ename for one in notebook.cells[0].outputs if one.output_type == "error"] == [
        "ZeroDivisionError"
    ]
    assert notebook.cells[1].outputs == []


@pytest.mark.parametrize("begin", ["with gput.Tracker(live=True):", "%track\nif True:"])
def test_an_interrupted_cell_is_called_interrupted(run: Run, begin: str) -> None:
    """The kernel gets the signal that the stop button sends; the next cell runs."""
    load = "%load_ext gpu_tracker\nimport gpu_tracker as gput, os, signal, time"
    code = f"{begin}\n    os.kill(os.getpid(), signal.SIGINT)\n    time.sleep(60)"
    notebook = run(load, code, "print('alive')")

    assert "interrupted" in shown(notebook.cells[1])["text/plain"]
    assert [one.ename for one in notebook.cells[1].outputs if one.output_type == "error"] == [
        "KeyboardInterrupt"
    ]
    assert printed(notebook.cells[2]) == "alive\n"


def test_a_cell_that_runs_again_ends_what_it_had_started(run: Run) -> None:
    """Nobody else could: its variable has the new tracker."""
    stop = "t.stop(); import threading; print([x.name for x in threading.enumerate() if 'gpu-tracker' in x.name])"
    notebook = run(START, START, "print(t.state.name)", stop)

    assert "finished" in shown(notebook.cells[0])["text/plain"]
    assert "finished" in shown(notebook.cells[1])["text/plain"]
    assert printed(notebook.cells[2]) == "STARTED\n"
    assert printed(notebook.cells[3]) == "[]\n"


def test_a_variable_that_gets_another_tracker_ends_the_first(run: Run) -> None:
    """Also from a cell with another text; one that has another variable goes on."""
    other = START.replace("t.start", "u.start").replace("t =", "u =")
    again = f"# edited\n{START}"
    notebook = run(START, other, again, "print(u.state.name); u.stop(); t.stop()")

    assert "finished" in shown(notebook.cells[0])["text/plain"]
    assert printed(notebook.cells[3]) == "STARTED\n"


def test_the_magic_tracks_one_cell(run: Run) -> None:
    """With top-level await, which a cell magic that ran the text would break; `last` is its report."""
    notebook = run(
        "%load_ext gpu_tracker",
        "%track --name fit\nimport asyncio\nawait asyncio.sleep(0.3)\nprint('awaited')",
        "1 + 1",
        "%track last",
        "report = _; print(type(report).__name__, report.header.identity.name)",
    )

    assert notebook.cells[0].outputs == []  # its end is told to us, not its start
    assert "fit: finished" in shown(notebook.cells[1])["text/plain"]
    assert printed(notebook.cells[1]) == "awaited\n"
    assert shown(notebook.cells[2]) == {"text/plain": "2"}
    assert "RAM of the job" in words_in(shown(notebook.cells[3])["text/html"])
    assert printed(notebook.cells[4]) == "Report fit\n"


def test_every_cell_has_its_line_and_its_row(run: Run) -> None:
    """What a cell keeps is told apart from what it held for a moment; the table has the largest first."""
    notebook = run(
        "%load_ext gpu_tracker",
        "%track auto",
        "kept = b'x' * 300_000_000",
        "len(b'x' * 200_000_000)",
        "raise ValueError('no')",
        "%track cells",
        "%track auto off",
        "print('quiet')",
    )
    kept, passing, failed = (printed(cell) for cell in notebook.cells[2:5])
    rows = shown(notebook.cells[5])["text/plain"].splitlines()

    assert re.match(r"cell 3: RAM \+(29|30)\d MB, peak \d+ MB; ", kept)
    size = re.match(r"cell 4: RAM ([+-][\d.]+) (\w+), peak (\d+) MB; ", passing)
    assert size is not None
    assert abs(float(size[1])) < 30 or size[2] != "MB"
    assert int(size[3]) > 490
    assert failed.rstrip().endswith("(raised)")
    assert printed(notebook.cells[1]) == printed(notebook.cells[6]) == ""
    assert printed(notebook.cells[7]) == "quiet\n"
    assert [row.split()[0] for row in rows] == ["cell", "3", *(row.split()[0] for row in rows[2:])]
    assert "<table>" in shown(notebook.cells[5])["text/html"]


def test_a_cell_that_runs_others_is_one_cell(run: Run) -> None:
    """What they print stays theirs, and the line comes after the end of a capture."""
    notebook = run(
        "%load_ext gpu_tracker",
        "%track auto",
        "%%capture out\nheld = b'x' * 100_000_000\nprint('mine')",
        "print(repr(out.stdout))",
        "get_ipython().run_cell('inner = 1')\nget_ipython().run_cell('')\nmore = b'x' * 100_000_000\nprint('done')",
        "get_ipython().run_cell('await refused()')\nprint('after')",
        "%track auto off",
        "%track\nget_ipython().run_cell('inner = 1')\nmost = b'x' * 100_000_000",
        "table = %track cells\nprint(sorted(use.number for use in table.cells if use.ram_bytes > 90_000_000))",
    )
    said = [printed(cell) for cell in notebook.cells]

    assert re.match(r"cell 3: RAM \+(9|10)\d(\.\d)? MB, ", said[2])
    assert said[3].splitlines()[0] == repr("mine\n")
    assert said[4].splitlines()[0] == "done"
    assert said[4].count("cell 5: ") == 1
    assert re.match(r"cell 5: RAM \+(9|10)\d(\.\d)? MB, ", said[4].splitlines()[1])
    assert said[5].count("cell 6: ") == 1
    assert said[5].index("after") < said[5].index("cell 6: ")
    assert said[8] == "[3, 5, 8]\n"


class Info:
    """What IPython knows of a cell."""

    def __init__(self, raw_cell: str) -> None:
        self.raw_cell = raw_cell
        self.info = self


def test_the_outermost_cell_is_known_by_its_begin_and_end() -> None:
    """Also if the end of one has no result, or that of another, or never comes."""
    running, outer, inner = Running(), Info("outer"), Info("inner")

    assert [running.begin(1, outer), running.begin(1, inner)] == [True, False]
    assert [running.end(inner), running.end(Info(" ")), running.end(Info("refused"))] == [False, False, False]
    assert running.end(outer)
    assert [running.begin(1, outer), running.begin(1, inner)] == [True, False]
    assert [running.end(None), running.end(Info("outer"))] == [False, True]
    assert running.end(Info("not begun"))
    assert [running.begin(1, outer), running.begin(2, outer), running.end(outer)] == [True, True, True]


def test_words_in_quotes_may_have_spaces(run: Run, tmp_path: Path) -> None:
    """Names and paths; a quote that is not closed is explained."""
    notebook = run(
        "%load_ext gpu_tracker",
        '%track --name "a b" --record "my runs/a b.jsonl"\n1',
        "%track last",
        "print(_.header.identity.name)",
        '%track experiment "c d" --keep "x, y"',
        "x = y = z = 1",
        "%track experiment end",
        '%track --name "a',
    )

    assert printed(notebook.cells[3]) == "a b\n"
    assert (tmp_path / "my runs/a b.jsonl").exists()
    assert shown(notebook.cells[6])["text/plain"].startswith("experiment c d: ")
    assert "deleted: z; kept: x, y" in shown(notebook.cells[6])["text/plain"]
    assert "UsageError: %track: No closing quotation" in str(notebook.cells[7].outputs)


def test_the_table_shows_code_and_how_a_cell_ended(run: Run) -> None:
    """Not our own line, and an exit in a cell is no regular end, whatever its code is."""
    notebook = run(
        "%load_ext gpu_tracker",
        "%track --name fit\n\ntotal = 1",
        "%track",
        "%track\nraise SystemExit",
        "%track\nraise SystemExit(3)",
        "%track cells time",
        "total",
    )
    rows = {row.split()[0]: row for row in shown(notebook.cells[5])["text/plain"].splitlines()}

    assert "total = 1" in rows["2"]
    assert "%track" in rows["3"]
    assert all("raise SystemExit" in rows[number] and "(raised)" in rows[number] for number in ("4", "5"))
    assert "(raised)" not in rows["2"] + rows["3"]


def test_an_experiment_spans_cells(run: Run) -> None:
    """Its variables are gone, the kept one is not; outputs that IPython keeps are named."""
    notebook = run(
        "%load_ext gpu_tracker",
        "%track experiment a --keep score",
        "class Load:\n    content = bytes(2_000_000)\nscore, data, out = 0.9, Load(), Load()",
        "out",
        "%track experiment end",
        "print('score' in globals(), 'data' in globals(), 'Load' in globals())",
        "%track experiment",
        "%track experiment b --drop x",
        "%track experiment end",
    )
    text = shown(notebook.cells[4])["text/plain"]

    assert text.startswith("experiment a: RAM +")
    assert "\n  deleted: data, out; kept: score\n" in text
    assert re.search(r"not freed: out \(Load, \d+ B\), held by (_|_4|Out\[4\])\n?", text)
    assert "<li>" in shown(notebook.cells[4])["text/html"]
    assert printed(notebook.cells[5]) == "True False True\n"
    assert all("%track experiment NAME" in str(cell.outputs) for cell in notebook.cells[6:8])
    assert "There is no experiment to end" in str(notebook.cells[8].outputs)


def test_the_end_of_an_experiment_is_shown_wherever_in_a_cell_it_is(run: Run) -> None:
    """It has deleted variables."""
    notebook = run(
        "%load_ext gpu_tracker",
        "%track experiment a",
        "data = 1",
        "%track experiment b\nother = 2",
        "%track experiment end\nprint('data' in globals(), 'other' in globals())",
    )

    assert "deleted: data" in shown(notebook.cells[3])["text/plain"]
    assert "deleted: other" in shown(notebook.cells[4])["text/plain"]
    assert printed(notebook.cells[4]) == "False False\n"


def test_what_a_failed_cell_held_is_given_back(run: Run) -> None:
    """IPython keeps its error in several places, and reads the variables of its frames."""
    notebook = run(
        "import gpu_tracker as gput\ndef fail():\n    held = bytearray(150_000_000)\n    raise ValueError",
        "fail()",
        "gput.reclaim()",
    )

    assert re.match(
        r"frames of the last traceback: RAM 1[45]\d MB given back", shown(notebook.cells[2])["text/plain"]
    )


def test_a_wrong_word_is_explained(run: Run) -> None:
    """In one sentence, without a traceback; unloading takes the magic away."""
    notebook = run(
        "%load_ext gpu_tracker",
        "%track everything",
        "%track cells",
        "%track last",
        "%%track\n1 + 1",
        "%track auto",
        "%unload_ext gpu_tracker",
        "%track",
        "%%track\n1",
    )
    said = [str(cell.outputs) for cell in notebook.cells]

    assert "%track auto [off]: every cell from now on" in said[1]
    assert "No cell was tracked yet: write %track in the first line of one." in said[2]
    assert "No cell was tracked yet" in said[3]
    assert "Write %track, with one %, in the first line of the cell." in said[4]
    assert "%track auto is off now: gpu_tracker was unloaded." in said[6]
    assert "not found" in said[7]
    assert "not found" in said[8]


def test_pictures_survive_an_export(run: Run) -> None:
    """As the HTML of nbconvert, without scripts of ours or anything to fetch."""
    nbconvert = pytest.importorskip("nbconvert", reason="nbconvert is not installed (WITH=notebook)")
    notebook = run(START, "time.sleep(1.5)\nt.stop()", "t", "t.report", "gput.gpus()")
    html, _ = nbconvert.HTMLExporter(template_name="basic").from_notebook_node(notebook)

    assert len(re.findall(r'<img[^>]* src="data:image/svg\+xml;base64,', html)) == 3
    assert "<script" not in "".join(shown(cell)["text/html"] for cell in notebook.cells[2:])


def test_a_title_names_the_notebook(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the server says which one it is; and the recording is named after it."""
    monkeypatch.setenv("JPY_SESSION_NAME", "/home/me/work/train.ipynb")
    code = "import gpu_tracker as gput\nwith gput.Tracker(record='runs/') as t: pass\nprint(t.report, t.recording_path)"
    notebook = run("1", code)
    text = printed(notebook.cells[1])

    assert text.startswith("train.ipynb cell 2: finished")
    assert re.search(r"/runs/\d+-\d+-train-\d+\.jsonl", text)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_runs_and_is_stored_with_its_outputs(run: Run, path: Path) -> None:
    """Every cell shows the same kinds of outputs as in the file, and both say what the example promises."""
    if "torch" in path.stem:
        pytest.importorskip("torch", reason="torch is not installed (make test WITH=frameworks)")
    stored = nbformat.read(path, 4)
    cells = [cell for cell in stored.cells if cell.cell_type == "code"]
    again = run(*(cell.source for cell in cells)).cells

    assert [kinds(cell) for cell in again] == [kinds(cell) for cell in cells]
    for outputs in (str(again), str(cells)):
        assert [promise for promise in PROMISES[path.stem] if promise not in outputs] == []
    for cell in (*again, *cells):
        if "display_data" in kinds(cell) and "%track experiment" not in cell.source:
            assert "RAM of the job" in words_in(shown(cell)["text/html"])


def kinds(cell: Any) -> list[str]:
    """Of its outputs, without warnings. A kernel sends what is printed in one piece or in several."""
    found = [one.output_type for one in cell.outputs if one.get("name") != "stderr"]
    return [kind for kind, before in zip(found, ["", *found], strict=False) if {kind, before} != {"stream"}]


def test_in_a_terminal_nothing_is_drawn() -> None:
    """There an output cannot be changed, and every update would be another line."""
    code = "import gpu_tracker as gput\nwith gput.Tracker(live=True) as t: pass\nprint(t.report.ending)"
    options = ["--no-banner", "--colors=NoColor", "-c"]
    result = subprocess.run(
        [sys.executable, "-m", "IPython", *options, code], capture_output=True, text=True, check=True
    )

    assert result.stdout.splitlines()[-1] == "stopped"
    assert result.stderr.count("live=True draws in the output of a notebook's cell") == 1
    assert "waiting" not in result.stdout

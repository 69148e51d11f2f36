"""Names of recordings."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from hypothesis import example, given, strategies as st

from gpu_tracker.core.model import Identity
from gpu_tracker.recording.create import create
from gpu_tracker.recording.naming import (
    _INTERPRETERS,
    _WRAPPERS,
    name_command,
    name_directory,
    name_in_job,
    name_recording,
)

LAUNCHERS = [*_INTERPRETERS, *_WRAPPERS]
OPTIONS = sorted(
    {
        f"-{name}"
        for table in (_INTERPRETERS, _WRAPPERS)
        for row in table.values()
        for name in sum(row[:3], ())
    }
)

COMMANDS = {
    # The script, not the interpreter and its options.
    "train": [
        "python train.py",
        "python -W ignore train.py",
        "python -Wignore train.py",
        "python -u -X dev train.py",
        "python -uX dev train.py",
        "/usr/bin/python3.11 -u dir/train.py --epochs 5",
        "python3.13t train.py",
        "pypy3 -- train.py",
        "python +x train.py",
        "ipython --profile p train.ipynb",
        "./train.py",
        "train",
    ],
    "x": [
        "bash x.sh",
        "bash -euo pipefail x.sh",
        "sh -x ./x.sh",
        "zsh +x x.sh",
    ],
    "a": [
        "Rscript --vanilla a.R",
        "R --no-save -f a.R",
        "R --file=a.R",
        "R CMD BATCH --no-save a.R out.txt",
        "julia +1.10 -t 4 --project=. a.jl",
        "julia -t4 a.jl",
        "node --max-old-space-size=4096 -r ts-node/register a.js",
        "nodejs a.mjs",
        "perl -I lib -MList::Util=sum a.pl",
        "ruby -w a.rb",
        "lua5.4 a.lua",
        "java -Xmx4g -cp lib.jar -jar a.jar x",
        "papermill -p epochs 3 a.ipynb out.ipynb",
        "jupyter nbconvert --to notebook --execute a.ipynb",
    ],
    # A module is its own name, unless it runs a script.
    "pkg.mod": ["python -m pkg.mod", "python -um pkg.mod --x", "python -mpkg.mod", "java --module pkg.mod"],
    "t": [
        "env A=1 B=2 python t.py",
        "env -i -u HOME A=b=c python t.py",
        "time -f %e -o out.txt python t.py",
        "nohup python t.py",
        "stdbuf -oL -e 0 python t.py",
        "taskset -c 0 python t.py",
        "taskset 0x3 python t.py",
        "numactl --cpunodebind=0 -m 0 python t.py",
        "numactl -N 0 --membind 0 -- python t.py",
        "ionice -c 2 -n7 python t.py",
        "nice -n 5 python t.py",
        "nice -5 python t.py",
        "chrt -f 10 python t.py",
        "timeout 5m python t.py",
        "timeout -k 10 --signal KILL 5m python t.py",
        "setsid -w python t.py",
        "flock -w 5 /tmp/lock python t.py",
        "sudo -E -u bob A=1 python t.py",
        "systemd-run --scope -p MemoryMax=1G python t.py",
        "xvfb-run -a -s '-screen 0 1x1x8' python t.py",
        "srun -n 4 python t.py",
        "srun -n4 --gpus-per-task 1 --cpu-bind=none python -u t.py",
        "mpirun -np 4 python t.py",
        "mpirun --mca btl self --map-by node -x A=1 -oversubscribe python t.py",
        "mpiexec -n 2 -genv A 1 python -m mpi4py t.py",
        "horovodrun -np 4 -H a:1,b:1 python t.py",
        "torchrun --nproc_per_node=2 t.py",
        "torchrun --nnodes 1 --nproc-per-node 2 --standalone t.py --nproc 3",
        "python -m torch.distributed.run --nproc_per_node 2 t.py",
        "python /opt/bin/torchrun t.py",
        "accelerate launch --num_processes 2 t.py",
        "deepspeed --num_gpus 2 t.py --deepspeed",
        "uv run t.py",
        "uv run --with numpy -p 3.12 python t.py",
        "uv run --script t.py",
        "conda run -n env python t.py",
        "micromamba run --prefix /opt/env --no-capture-output python t.py",
        "poetry run python t.py",
        "pixi run -e gpu python t.py",
        "apptainer exec --nv -B /data image.sif python t.py",
        "python -m cProfile -o out.prof t.py",
        "python -m coverage run --source=x t.py",
        "nohup nice -n 5 env A=1 timeout 5m bash -e t.sh",
    ],
    "make": ["make all", "nice -n 5 make all", "uv run make"],
    "ruff": ["uvx --from ruff==1 ruff check", "python -m ruff check"],
    # Nothing else has a name.
    "python": ["python", "python -c 'import x; x.run()' train.py", "python -uc 1 a.py", "python -m", "python -", "python .", "nice python -u"],
    "python3": ["python3 -u", "python3 - train.py"],
    "bash": ["bash -c 'exec python train.py'", "bash -lc ./x.sh", "bash -s x"],
    "perl": ["perl -ne print a.txt", "perl -e 1"],
    "node": ["node -e 1"],
    "Rscript": ["Rscript -e 'f()' x"],
    "env": ["env", "env A=1", "env -S 'python t.py'"],
    "timeout": ["timeout 5m", "timeout -k"],
    "flock": ["flock lock -c 'python t.py'"],
    "uv": ["uv pip install x", "uv"],
    "nice2": ["./nice2 x"],
    # Strange, but safe.
    "my_job": ["'./my job.sh'"],
    "_passwd": ["'../../etc/\u202epasswd'"],
    "hidden": [".hidden.sh", "python .hidden.py"],
    "sh": [".sh"],
    "job": ["''", "..", "/", "--"],
    "a.tar": ["./a.tar.sh"],
    "x" * 40: ["./" + "x" * 300],
    "été": ["python été.py"],
}  # fmt: skip


@pytest.mark.parametrize(
    ("command", "name"), [(command, name) for name, commands in COMMANDS.items() for command in commands]
)
def test_a_recording_is_named_after_what_the_command_runs(command: str, name: str) -> None:
    """The script or the program, not its launcher."""
    assert name_command(shlex.split(command)) == name


def test_a_name_has_time_program_and_pid() -> None:
    """Without a command it is a job."""
    assert name_recording(("python", "a.py"), 42, "20260131-235959") == "20260131-235959-a-42.jsonl"
    assert name_recording((), 42, "20260131-235959") == "20260131-235959-job-42.jsonl"


def test_a_new_file_is_named_by_the_local_time(tmp_path: Path) -> None:
    """In the given directory."""
    path = Path(create(str(tmp_path / "runs"), ("python", "-u", "train.py"), 42))

    assert path.parent == tmp_path / "runs"
    assert re.fullmatch(r"\d{8}-\d{6}-train-42\.jsonl", path.name)


@given(st.lists(st.one_of(st.sampled_from(LAUNCHERS + OPTIONS), st.text(max_size=60)), max_size=8))
@example(["\udcff"])
@example(["python", "a\0b\n.py"])
def test_any_command_gives_a_safe_name(words: list[str]) -> None:
    """One part of a path, without a leading dot or dash, short enough for any file system."""
    name = name_command([word for row in words for word in row.split(" ")])

    assert re.fullmatch(r"(?![.-])[\w.-]{1,40}", name)
    assert len(name_recording(words, 2**22, "20260131-235959").encode()) < 255


@pytest.mark.parametrize(
    ("identity", "name"),
    [
        (Identity(job="4711", step="0", node="n1", rank=3), "job-4711/s0-n1-r3.jsonl"),
        (Identity(job="4711", step="batch", node="n1"), "job-4711/sbatch-n1.jsonl"),
        (Identity(job="4712", array_job="4700", array_task="7", node="n1"), "job-4700_7/n1.jsonl"),
        (Identity(job="9", array_task="7"), "job-9_7/host.jsonl"),
        (Identity(job="4711", restart=1, attempt=1, rank=0), "job-4711.r1/host-r0.jsonl"),
        (Identity(run_id="x", rank=1, attempt=2), "job-x/host-r1.a2.jsonl"),
        (Identity(job="7", launcher="torchrun", restart=1, attempt=1, rank=0), "job-7.r1/host-r0.a1.jsonl"),
        (Identity(job="12.server/../../etc", node="/n 1"), "job-12.server_.._.._etc/_n_1.jsonl"),
        (Identity(rank=1), None),
        (Identity(rank=1, launcher="openmpi"), None),
        (Identity(), None),
    ],
)
def test_a_part_of_a_job_is_named_by_what_it_is_of_it(identity: Identity, name: str | None) -> None:
    """Array tasks, restarts and attempts apart; a name that cannot leave its directory."""
    assert name_in_job(identity, "host.domain") == name


def test_a_name_that_is_taken_gives_the_next() -> None:
    """As two commands of one batch script have it."""
    assert name_in_job(Identity(job="1", node="n", rank=0), "h", 2) == "job-1/n-r0-2.jsonl"


def test_long_names_of_jobs_that_begin_alike_have_directories_of_their_own() -> None:
    """A short one keeps its name."""
    first, second = (name_directory(60 * "x" + letter) for letter in "ab")

    assert first != second
    assert len(first) == len(second) == len("job-") + 40
    assert name_directory("4711") == "job-4711"

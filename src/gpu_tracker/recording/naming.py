"""Names recordings after the script or program that a command runs. Pure.

`nice -n 5 python -W ignore train.py` runs `train`. Two tables list the options of launchers; the first word that is
not the launcher's own gives the name.
"""

from __future__ import annotations

from ..core.values import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..core.model import Identity

SUFFIX = ".jsonl"
JOB_PREFIX = "job-"
"""Of a directory with the recordings of one job."""
_LONGEST_NAME = 40
_DIGEST_LETTERS = 8
_SCRIPT_SUFFIXES = frozenset(
    ["py", "pyz", "sh", "r", "jl", "js", "mjs", "ts", "pl", "rb", "lua", "jar", "ipynb"]
)


class _Launcher(NamedTuple):
    """The options of a program that runs another one, without dashes."""

    with_value: tuple[str, ...] = ()
    """Options followed by a value; listed twice if by two."""
    with_target: tuple[str, ...] = ()
    """Options followed by the program and its arguments."""
    with_code: tuple[str, ...] = ()
    """Options after which there is no script."""
    own_words: int = 0
    """Number of positional arguments before the program."""


def _launcher(with_value: str = "", *, target: str = "", code: str = "", own_words: int = 0) -> _Launcher:
    return _Launcher(tuple(with_value.split()), tuple(target.split()), tuple(code.split()), own_words)


_PLAIN = _launcher()
_SHELL = _launcher("o O rcfile init-file", code="c s")
_PYTHON = _launcher("W X check-hash-based-pycs", target="m", code="c")
_NODE = _launcher("r require import loader C conditions env-file", code="e eval p print")
_TORCHRUN = _launcher(
    "nnodes nproc-per-node node-rank rdzv-backend rdzv-endpoint rdzv-id rdzv-conf max-restarts monitor-interval "
    "start-method role log-dir r redirects t tee local-ranks-filter master-addr master-port local-addr",
    target="m module",
)
_ACCELERATE = _launcher(
    "config-file num-processes num-machines machine-rank main-process-ip main-process-port main-training-function "
    "mixed-precision gpu-ids num-cpu-threads-per-process dynamo-backend deepspeed-config-file zero-stage "
    "gradient-accumulation-steps",
    target="m module",
)
_DEEPSPEED = _launcher(
    "H hostfile i include e exclude num-nodes num-gpus master-addr master-port launcher launcher-args autotuning",
    target="module",
)
_MPI = _launcher(
    "n np c N npernode ppn H host hosts hostfile f machinefile x prefix wdir wd map-by bind-to rank-by "
    "output-filename mca mca prtemca prtemca env env genv genv genvlist envlist"
)
_CONDA = _launcher("n name p prefix cwd")
_APPTAINER = _launcher("B bind env env-file H home W workdir pwd cwd overlay S scratch network", own_words=1)

# Also found with a version after the name: `python3.13`.
_INTERPRETERS: Mapping[str, _Launcher] = {
    "python": _PYTHON,
    "pypy": _PYTHON,
    "ipython": _launcher("profile ipython-dir", target="m", code="c"),
    **dict.fromkeys(("sh", "bash", "dash", "ksh", "zsh", "fish"), _SHELL),
    "R": _launcher("g gui d debugger", target="f file", code="e"),
    "Rscript": _launcher(code="e"),
    "julia": _launcher("J sysimage H home L load p procs t threads C cpu-target", code="e eval E print"),
    "node": _NODE,
    "nodejs": _NODE,
    "perl": _launcher("I M m", code="e E"),
    "ruby": _launcher("I r E C", code="e"),
    "lua": _launcher("l", code="e"),
    "java": _launcher("cp classpath class-path module-path add-modules", target="jar module"),
}
_WRAPPERS: Mapping[str, _Launcher] = {
    # Process attributes.
    **dict.fromkeys(("nohup", "setsid", "catchsegv", "unbuffer"), _PLAIN),
    "env": _launcher("u unset C chdir", code="S split-string"),
    "nice": _launcher("n adjustment"),
    "ionice": _launcher("c class n classdata"),
    "chrt": _launcher("T sched-runtime P sched-period D sched-deadline", own_words=1),
    "taskset": _launcher(own_words=1),
    "numactl": _launcher(
        "i interleave w weighted-interleave p preferred P preferred-many m membind N cpunodebind C physcpubind"
    ),
    "time": _launcher("f format o output"),
    "timeout": _launcher("k kill-after s signal", own_words=1),
    "stdbuf": _launcher("i input o output e error"),
    "flock": _launcher("w wait timeout E conflict-exit-code", code="c command", own_words=1),
    "sudo": _launcher(
        "u user g group C close-from D chdir h host p prompt R chroot r role t type T command-timeout"
    ),
    "systemd-run": _launcher("p property u unit slice description uid gid nice E setenv M machine H host"),
    "xvfb-run": _launcher("e error-file f auth-file n server-num p xauth-protocol s server-args w wait"),
    # Clusters and many GPUs.
    "srun": _launcher(
        "A account B extra-node-info c cpus-per-task C constraint d dependency D chdir e error G gpus i input J job-name "
        "L licenses m distribution M clusters n ntasks N nodes o output p partition q qos r relative t time T threads w nodelist "
        "W wait x exclude gres gpus-per-node gpus-per-task gpu-bind cpu-bind cpus-per-gpu mem mem-per-cpu mem-per-gpu mem-bind "
        "mpi ntasks-per-node ntasks-per-core ntasks-per-gpu reservation jobid container-image container-mounts"
    ),
    **dict.fromkeys(("mpirun", "mpiexec", "orterun", "prterun", "mpiexec.hydra"), _MPI),
    "horovodrun": _MPI,
    **dict.fromkeys(("torchrun", "torch.distributed.run", "torch.distributed.launch"), _TORCHRUN),
    **dict.fromkeys(("accelerate launch", "accelerate.commands.launch"), _ACCELERATE),
    **dict.fromkeys(("deepspeed", "deepspeed.launcher.runner"), _DEEPSPEED),
    **dict.fromkeys(("apptainer exec", "singularity exec"), _APPTAINER),
    # Environments.
    "uv run": _launcher(
        "p python with with-editable with-requirements extra group env-file project directory index",
        target="m module s script",
    ),
    "uvx": _launcher("p python with from index"),
    **dict.fromkeys(("conda run", "mamba run", "micromamba run"), _CONDA),
    **dict.fromkeys(("poetry run", "pipenv run", "pdm run", "rye run"), _PLAIN),
    "pixi run": _launcher("e environment manifest-path"),
    # Programs that run a script.
    "R CMD": _launcher(own_words=1),
    "cProfile": _launcher("o outfile s sort", target="m"),
    "pdb": _launcher("c command", target="m"),
    "mpi4py": _launcher(target="m", code="c"),
    "coverage run": _launcher("rcfile data-file source include omit context", target="m module"),
    "papermill": _launcher(
        "p p parameters parameters r r parameters-raw parameters-raw y parameters-yaml f parameters-file k kernel cwd"
    ),
    "jupyter nbconvert": _launcher("to output output-dir config template"),
}


def name_in_job(identity: Identity, host: str, number: int = 1) -> str | None:
    """The name of a part of a job below the directory: `job-4711/s0-n1-r3.jsonl`; None if it is not part of any.

    Array tasks, restarts and attempts have names of their own; a name that is taken gives the next: `...-r3-2.jsonl`.
    """
    job = identity.job or identity.run_id
    if identity.array_task is not None and (identity.array_job or identity.job):
        job = f"{identity.array_job or identity.job}_{identity.array_task}"
    if job is None:
        return None
    restart = f".r{identity.restart}" if identity.restart else ""
    parts = [
        "" if identity.step is None else f"s{identity.step}",
        identity.node or host.partition(".")[0],
        "" if identity.rank is None else f"r{identity.rank}",
    ]
    attempt = f".a{identity.relaunches}" if identity.relaunches else ""
    again = f"-{number}" if number > 1 else ""
    file = "-".join(_keep_valid(part) for part in parts if part)
    return f"{name_directory(job)}{restart}/{file}{attempt}{again}{SUFFIX}"


def name_directory(job: str) -> str:
    """Of a job, by its number or name; of two long ones that begin alike, another one."""
    name = _keep_valid(job)
    if len(job) > _LONGEST_NAME:
        from binascii import crc32

        name = f"{name[: -_DIGEST_LETTERS - 1]}-{crc32(job.encode('utf-8', 'replace')):0{_DIGEST_LETTERS}x}"
    return f"{JOB_PREFIX}{name}"


def name_recording(command: Sequence[str], pid: int, stamp: str, number: int = 1) -> str:
    """A file name with time, program and pid: `20260131-235959-train-4242.jsonl`; the next is `...-4242-2.jsonl`."""
    again = f"-{number}" if number > 1 else ""
    return f"{stamp}-{name_command(command)}-{pid}{again}{SUFFIX}"


def name_command(command: Sequence[str]) -> str:
    """What a command runs, in characters that are valid on any file system."""
    name = "job"
    words = tuple(command)
    while words:
        name = _clean(words[0]) or name
        words = _unwrap(words)
    return name


def _unwrap(words: tuple[str, ...]) -> tuple[str, ...]:
    """The command that a launcher runs; empty if this is not a launcher, or runs no named program."""
    program = _basename(words[0])
    pair = " ".join((program, *words[1:2]))
    if pair in _WRAPPERS:
        return _skip_own_words(_WRAPPERS[pair], words[2:])
    launcher = _WRAPPERS.get(program) or _INTERPRETERS.get(_drop_version(program))
    return _skip_own_words(launcher, words[1:]) if launcher else ()


def _skip_own_words(launcher: _Launcher, words: tuple[str, ...]) -> tuple[str, ...]:
    known = launcher.with_value + launcher.with_target + launcher.with_code
    own_words = launcher.own_words
    at = 0
    has_options = True
    while at < len(words):
        word = words[at]
        at += 1
        if word == "--":
            has_options = False
        elif has_options and word.startswith(("-", "+")):
            option, value = _split_option(word, known)
            if word == "-" or option in launcher.with_code:  # from standard input, or in the command itself
                return ()
            if option in launcher.with_target:
                return (value, *words[at:]) if value else words[at:]
            if not value:
                at += launcher.with_value.count(option)
        elif own_words:
            own_words -= 1
        elif not _is_assignment(word):
            return words[at - 1 :]
    return ()


def _split_option(word: str, known: tuple[str, ...]) -> tuple[str, str]:
    """Its name without dashes, and the value if that is in the same word: `--n=4`, `-n4`, `-un4`."""
    text = word.lstrip("-+")
    name, _, value = text.partition("=")
    name = name.replace("_", "-")
    if name not in known and not word.startswith("--"):
        for position, letter in enumerate(text):
            if letter in known:
                return letter, text[position + 1 :]
    return name, value


def _is_assignment(word: str) -> bool:
    """`NAME=value`, which `env` and others take before the command."""
    name, equals, _ = word.partition("=")
    return bool(equals) and name.isidentifier()


def _drop_version(program: str) -> str:
    """`python` for `python3.13t`; the `t` means free threading."""
    if program in _INTERPRETERS:
        return program
    return program.removesuffix("t").rstrip("0123456789.")


def _basename(word: str) -> str:
    """Also of a program on Windows."""
    return word.replace("\\", "/").rstrip("/").rpartition("/")[2].removesuffix(".exe")


def _clean(word: str) -> str:
    """The last part of a path without a script's suffix, in letters, digits and `._-`; no leading dot or dash."""
    base = _basename(word)
    stem, _, suffix = base.rpartition(".")
    return _keep_valid(stem if stem and suffix.lower() in _SCRIPT_SUFFIXES else base)


def _keep_valid(text: str) -> str:
    letters = (letter if letter.isalnum() or letter in "._-" else "_" for letter in text)
    return "".join(letters).lstrip(".-")[:_LONGEST_NAME]

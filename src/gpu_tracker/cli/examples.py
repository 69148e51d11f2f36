"""Examples: each command's help, its page of the manual and the first steps begin with them."""

from __future__ import annotations

NAME = "gpu-tracker"
# What comes after the name of the program → what it does.
_EXAMPLES: dict[str, tuple[tuple[str, str], ...]] = {
    "": (
        ("run -- python train.py", "track a command; its report follows its output"),
        ('-e "python train.py" --st 0.1 -f json', "the same in the compatible form, as JSON"),
    ),
    "run": (
        ("run -- python train.py", "track a command; its report follows its output"),
        ("run --report report.html -- python train.py", "write a page with charts, too"),
        ("run --fail-if 'peak_ram > 8GB' -- pytest", "exit with 1 if it needs more than that"),
    ),
    "attach": (
        ("attach 4711", "track a process that runs already, until it ends"),
        ("attach --job", "track the Slurm job on this node: srun --overlap gpu-tracker attach --job"),
    ),
    "report": (
        ("report", "the newest run"),
        ("report gpu-tracker-runs/train.jsonl -o report.html", "a page with charts"),
    ),
    "export": (("export run.jsonl -o run.parquet", "its samples as a table for pandas or polars"),),
    "compare": (
        ("compare before.jsonl after.jsonl", "two runs"),
        ("compare old=a1.jsonl,a2.jsonl new=runs/b/ --fail-if 'time > +5%'", "a gate for CI"),
    ),
    "size": (
        ("size gpu-tracker-runs/train-*.jsonl", "what to request the next time"),
        ("size gpu-tracker-runs/train-*.jsonl --for slurm", "as options of sbatch"),
    ),
    "ls": (
        ("ls", "all runs, newest first"),
        ("ls --sort peak_ram --filter 'command~train' --since 7d", "those of this week that used the most RAM"),
    ),
    "combine": (
        ("combine gpu-tracker-runs/job-4711/", "all ranks of a job on one screen"),
        ("combine --job 4711 -o job.html", "the same as a page"),
    ),
    "top": (
        ("top", "the newest run, while it goes on"),
        ("top run.jsonl --speed 10", "replay a finished one"),
    ),
    "send": (("send --otlp http://localhost:4318 gpu-tracker-runs/train.jsonl", "to an OpenTelemetry collector"),),
    "watch": (
        ("watch", "GPUs and their processes, until q"),
        ("watch --user anna --sort memory", "only Anna's processes, the largest first"),
        ("watch -cpu", "print once, with gpustat's options"),
    ),
    "serve": (
        ("serve", "all runs in gpu-tracker-runs in a browser"),
        ("ssh -L 8765:localhost:8765 HOST gpu-tracker serve", "those of another machine"),
    ),
    "query": (
        ("query", "one row per GPU"),
        ("query --query-gpu=utilization.gpu,memory.used --format=csv -l 1", "nvidia-smi's options"),
    ),
    "dmon": (("dmon -s pum -d 5 -o T", "power, utilization and memory every five seconds, with the time"),),
    "pmon": (("pmon -s um -c 1", "utilization and memory of each process, once"),),
    "doctor": (("doctor", "what can be measured on this machine, and what to do about the rest"),),
    "explain": (("explain", "all rules"), ("explain gpu-low", "one of them")),
    "sub-track": (
        ("sub-track analyze --tf tracking.csv --stf sub-tracking.csv", "what each code block used"),
        ("sub-track analyze --tf run.jsonl", "a recording: its report, with a table of regions"),
        ("sub-track combine --stf all.csv -p 101.csv -p 102.csv", "the files of several processes"),
        ("sub-track compare -m before=a.json -m after=b.json --stat max", "two programs"),
    ),
    "sub-track analyze": (("sub-track analyze --tf tracking.csv --stf sub-tracking.csv", ""),),
    "sub-track combine": (("sub-track combine --stf all.csv -p 101.csv -p 102.csv", ""),),
    "sub-track compare": (("sub-track compare -m before=a.json -m after=b.json --stat max", ""),),
    "completion": (
        ('eval "$(gpu-tracker completion bash)"', "in ~/.bashrc; zsh: in ~/.zshrc, after compinit"),
        ("completion fish > ~/.config/fish/completions/gpu-tracker.fish", "for fish"),
    ),
    "help": (("help", "all topics"), ("help limits", "how a limit is written")),
}  # fmt: skip


def list_examples(command: str) -> list[tuple[str, str]]:
    """Whole lines, and what each does."""
    return [(_complete(line), meaning) for line, meaning in _EXAMPLES[command]]


def show_examples(prog: str) -> str:
    """The first lines of the help of a command, such as `gpu-tracker run`."""
    examples = list_examples(prog.removeprefix(NAME).strip())
    lines = [f"{line}\n" + (f"      {meaning}\n" if meaning else "") for line, meaning in examples]
    return f"example{'s' if len(lines) > 1 else ''}:\n" + "".join(f"  {line}" for line in lines) + "\n"


def _complete(line: str) -> str:
    return line if f"{NAME} " in line else f"{NAME} {line}"

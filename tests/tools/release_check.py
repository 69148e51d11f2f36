"""Rehearse a release: build it twice, look into it, install it everywhere, and use it as a stranger would.

Each check prints a line; the first that fails ends the rehearsal with its reason. Nothing is uploaded.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from email.parser import HeaderParser
from pathlib import Path

from tools.every_python import PROJECT, find_python, list_oldest, list_promised

GOLDEN = PROJECT / "tests" / "recording" / "golden"
VENDORED = {
    "gpu_tracker/reports/html/assets/uplot.min.js": "gpu_tracker/reports/html/assets/uplot-LICENSE.txt"
}
SHARED = ("share/man/man1/gpu-tracker.1", "share/bash-completion/completions/gpu-tracker")
# They draw, or compare models of scikit-learn and its like: what they need is not what the wheel needs.
EXAMPLES = ("context_manager.py", "start_stop.py", "decorator.py", "regions.py", "child_process.py")


def main() -> int:
    """Exit code 0 if it may be released."""
    version = check_version()
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        wheel, source = check_reproducible(place)
        check_description(wheel, source)
        check_contents(wheel, source, version)
        pythons = {name: find_python(name) for name in list_promised(read("pyproject.toml"))}
        for name, python in pythons.items():
            if python is None:
                say(f"Python {name}", "not found, so not tried")
                continue
            for constraints in ((), tuple(list_oldest(read("pyproject.toml")))):
                if constraints and python != next(filter(None, pythons.values())):
                    continue
                use(place / f"{name}{'-oldest' if constraints else ''}", python, wheel, constraints)
    return 0


def check_version() -> str:
    """It is the same wherever it stands, and has an entry in the changelog."""
    version = str(*re.findall(r'__version__ = "(.+)"', read("src/gpu_tracker/core/version.py")))
    need(f"version: {version}\n" in read("CITATION.cff"), f"CITATION.cff does not have version {version}")
    first = re.findall(r"^## (\S+) \((.+)\)", read("CHANGELOG.md"), re.MULTILINE)[0]
    need(first[0] == version, f"CHANGELOG.md begins with {first[0]}, not {version}")
    say("version", f"{version} ({first[1]}) in the code, the changelog and CITATION.cff")
    return version


def check_reproducible(place: Path) -> tuple[Path, Path]:
    """Two builds, of two copies made at different times, are equal to the byte; the source distribution builds the same wheel."""
    builds = []
    for name in ("first", "second"):
        copy = place / name / "copy"
        export(copy)
        run(sys.executable, "-m", "build", "--outdir", place / name / "dist", copy)
        builds.append({file.name: digest(file) for file in (place / name / "dist").iterdir()})
    need(builds[0] == builds[1], f"two builds differ: {builds}")
    (source,) = (place / "first" / "dist").glob("*.tar.gz")
    (wheel,) = (place / "first" / "dist").glob("*.whl")
    with tarfile.open(source) as archive:
        archive.extractall(place / "unpacked", filter="data")
    (unpacked,) = (place / "unpacked").iterdir()
    run(sys.executable, "-m", "build", "--wheel", "--outdir", place / "third", unpacked)
    need(
        digest(place / "third" / wheel.name) == digest(wheel), "the source distribution builds another wheel"
    )
    for name, value in builds[0].items():
        say("reproducible", f"{name} sha256 {value[:16]}...")
    return wheel, source


def check_description(wheel: Path, source: Path) -> None:
    """The package index would take it, and shows what a stranger needs to know."""
    run(sys.executable, "-m", "twine", "check", "--strict", wheel, source)
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        told = HeaderParser().parsestr(archive.read(name).decode())
    for field in ("Summary", "License-Expression", "License-File", "Requires-Python", "Keywords", "Author"):
        need(told[field], f"the metadata has no {field}")
    need(str(told.get_payload()).startswith("# "), "the metadata has no description")
    say(
        "metadata",
        f"{told['Name']} {told['Version']}, {told['License-Expression']}, Python {told['Requires-Python']}",
    )


def check_contents(wheel: Path, source: Path, version: str) -> None:
    """All that belongs to it, and nothing else."""
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    for file, licence in VENDORED.items():
        need({file, licence} <= names, f"{file} or its licence is missing")
    need("gpu_tracker/py.typed" in names, "py.typed is missing")
    for shared in SHARED:
        need(any(name.endswith(f".data/data/{shared}") for name in names), f"{shared} is missing")
    foreign = {name for name in names if not name.startswith(("gpu_tracker/", f"gput-{version}."))}
    need(not foreign, f"the wheel has {sorted(foreign)[:3]}")
    with tarfile.open(source) as archive:
        kept = {name.partition("/")[2] for name in archive.getnames()}
    missing = [file for file in list_files() if file not in kept and not file.startswith(".")]
    need(not missing, f"the source distribution lacks {missing[:3]}")
    say("contents", f"{len(names)} files in the wheel, {len(kept)} in the source distribution")


def use(environment: Path, python: str, wheel: Path, constraints: tuple[str, ...]) -> None:
    """A fresh environment with the wheel alone: a tracked example, its report, the others, and recordings of older versions."""
    run(python, "-m", "venv", environment)
    needed = [one for one in constraints if one.partition("==")[0] in ("msgspec", "nvidia-ml-py", "psutil")]
    run(environment / "bin" / "pip", "install", "--quiet", wheel, *needed)
    command = environment / "bin" / "gpu-tracker"
    where = environment / "use"
    shutil.copytree(PROJECT / "examples", where / "examples")
    shutil.copytree(GOLDEN, where / "golden")
    run(command, "--version", cwd=where)
    told = run(
        command, "run", "--st", "0.1", "--", environment / "bin" / "python", "examples/train.py", cwd=where
    )
    need("exit code 0" in told and "recording:" in told, f"no report: {told}")
    run(command, "report", "-o", "report.html", cwd=where)
    need((where / "report.html").stat().st_size > 100_000, "the page is empty")  # uPlot alone is half of that
    for example in EXAMPLES:
        run(environment / "bin" / "python", f"examples/{example}", cwd=where)
    for recording in sorted((where / "golden").glob("*.jsonl")):
        run(command, "report", recording, cwd=where)
        run(command, "export", recording, "-o", recording.with_suffix(".csv"), cwd=where)
    installed = run(environment / "bin" / "pip", "list", "--format", "freeze", cwd=where).split()
    versions = [one for one in installed if one.startswith(("msgspec", "nvidia-ml-py", "psutil"))]
    say(f"Python {environment.name}", f"used with {', '.join(versions)}")


def export(copy: Path) -> None:
    """Only what is under version control, with the time of the copy."""
    for file in list_files():
        target = copy / file
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(PROJECT / file, target)


def list_files() -> list[str]:
    """Those under version control."""
    return run("git", "ls-files", "--cached", "--others", "--exclude-standard").splitlines()


def read(name: str) -> str:
    """A file of the project."""
    return (PROJECT / name).read_text(encoding="utf-8")


def digest(file: Path) -> str:
    """Of its contents."""
    return hashlib.sha256(file.read_bytes()).hexdigest()


def run(*words: object, cwd: Path = PROJECT) -> str:
    """What a command prints; it must succeed."""
    # A checkout must not be found in place of what is installed.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    line = [str(word) for word in words]
    done = subprocess.run(line, cwd=cwd, env=environment, capture_output=True, text=True)
    need(
        done.returncode == 0,
        f"{' '.join(line)}: exit code {done.returncode}\n{done.stdout}{done.stderr}",
    )
    return done.stdout + done.stderr


def need(is_so: object, problem: str) -> None:
    """End the rehearsal if it is not."""
    if not is_so:
        sys.exit(f"Not ready: {problem}")


def say(what: str, outcome: str) -> None:
    """One line for each check."""
    print(f"{what}: {outcome}", flush=True)


if __name__ == "__main__":
    sys.exit(main())

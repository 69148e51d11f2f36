"""Run the tests with each Python that pyproject.toml promises, in an environment of its own: `.venv-3.12`.

With `--oldest`: with the oldest of them that is here, and the oldest versions of dependencies that are allowed
(`.venv-oldest`). What was found, and what was not, is printed first.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

PROJECT = Path(__file__).parents[2]
# pandas 2.0 and pyarrow 14 were built for numpy 1, and do not say so themselves.
UNSAID = ("numpy<2",)


def main(arguments: list[str]) -> int:
    """Exit code 0 if every Python that was found passed, and there was one."""
    project = (PROJECT / "pyproject.toml").read_text()
    found = {version: find_python(version) for version in list_promised(project)}
    for version, python in found.items():
        print(f"Python {version}: {python or 'not found'}", flush=True)
    pythons = {version: python for version, python in found.items() if python}
    if not pythons:
        return 1
    if "--oldest" in arguments:
        environment = PROJECT / ".venv-oldest"
        constraints = list_oldest(project)
        print(f"dependencies: {' '.join(constraints)}", flush=True)
        environment.mkdir(exist_ok=True)
        (environment / "constraints.txt").write_text("\n".join(constraints))
        os.environ["PIP_CONSTRAINT"] = str(environment / "constraints.txt")
        return test(environment.name, next(iter(pythons.values())))
    codes = {version: test(f".venv-{version}", python) for version, python in pythons.items()}
    for version in found:
        outcome = {None: "not tested", 0: "passed"}.get(codes.get(version), "FAILED")
        print(f"Python {version}: {outcome}")
    return max(codes.values())


def list_promised(project: str) -> list[str]:
    """The versions that the classifiers name, oldest first."""
    return re.findall(r'"Programming Language :: Python :: (3\.\d+)"', project)


def list_oldest(project: str) -> list[str]:
    """The lowest versions of what the package itself needs, and of its extras."""
    needed = project[: project.index("[project.scripts]")]
    return [f"{name}=={version}" for name, version in re.findall(r'"([\w-]+)>=([\d.]+)"', needed)] + [*UNSAID]


def find_python(version: str) -> str | None:
    """One that starts: on the PATH, or kept by pyenv, whose stand-ins on the PATH may refuse."""
    names = [shutil.which(f"python{version}")]
    versions = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv", "versions")
    names += [str(path) for path in sorted(versions.glob(f"{version}.*/bin/python{version}"))]
    return next((name for name in names if name and starts(name)), None)


def starts(python: str) -> bool:
    """Whether it can be run and can make environments."""
    return subprocess.run([python, "-c", "import venv, ensurepip"], capture_output=True).returncode == 0


def test(environment: str, python: str) -> int:
    """The exit code of the tests in that environment."""
    print(f"{environment}: {python}", flush=True)
    return subprocess.run(
        ["make", "test-here", f"VENV={environment}", f"PYTHON={python}"], cwd=PROJECT
    ).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

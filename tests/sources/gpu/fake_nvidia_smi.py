"""A fake `nvidia-smi` that prints the content of a `scene.json` in the same folder, which is on the PATH.

It behaves like the real ones: errors on standard output, unsupported fields, one lost device that makes the query for
all fail, an empty table if no process computes.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

HERE = os.path.dirname(os.path.abspath(__file__))


def load_scene() -> dict[str, Any]:
    """Read the scene."""
    with open(os.path.join(HERE, "scene.json"), encoding="utf-8") as file:
        scene: dict[str, Any] = json.load(file)
    return scene


def end(text: str, code: int) -> NoReturn:
    """Print a message and exit."""
    sys.stdout.write(text)
    sys.stdout.flush()
    os._exit(code)


def write(text: str, scene: dict[str, Any]) -> None:
    """Print a line, in one piece or in several."""
    data = os.fsencode(text)
    step = 7 if scene.get("in_pieces") else len(data)
    for start in range(0, len(data), max(step, 1)):
        os.write(1, data[start : start + step])
        if scene.get("in_pieces"):
            time.sleep(0.001)


def select(scene: dict[str, Any], wanted: str | None) -> tuple[list[dict[str, str]], str]:
    """The requested devices, if they can be opened: else those before the first that cannot, and what is said of it."""
    gpus: list[dict[str, str]] = scene["gpus"]
    if wanted is not None:
        gpus = [gpu for gpu in gpus if gpu["index"] == wanted]
    if not gpus:
        end("No devices were found\n", 6)
    for gpu in gpus:
        if gpu["index"] in scene.get("hanging", []):
            time.sleep(1000)
        if gpu["index"] in scene.get("lost", []):
            number = gpu["index"] if scene.get("names_the_lost", True) else " "
            why = scene.get("why_lost", "GPU is lost.  Reboot the system to recover this GPU\n\n")
            complaint = f"Unable to determine the device handle for GPU{number}: {why}\n"
            return gpus[: gpus.index(gpu)], complaint
    return gpus, ""


def print_table(subject: str, fields: list[str], wanted: str | None) -> None:
    """Print one table."""
    scene = load_scene()
    if "complaint" in scene:
        end(scene["complaint"], 255)
    if subject in scene.get("stuck", []):
        time.sleep(1000)
    if subject in scene.get("crashing", []):
        os.kill(os.getpid(), signal.SIGSEGV)
    gpus, complaint = select(scene, wanted)
    if complaint and not scene.get("rows_first"):
        end(complaint, 15)
    uuids = [gpu["uuid"] for gpu in gpus]
    rows = gpus if subject == "gpu" else [app for app in scene["apps"] if app["gpu_uuid"] in uuids]
    for row in rows:
        cells = [row.get(field, "[N/A]") for field in fields]
        write(", ".join(cells) + "\n", scene)
    if complaint:
        end(complaint, scene.get("status", 15))
    if scene.get("garbage"):
        os.write(1, b"\xff\xfe\x00 what, is, this\n,,,,,,\n\n1, 2\n")
    if subject in scene.get("crashing_late", []):
        os.kill(os.getpid(), signal.SIGSEGV)
    if "warning" in scene:
        end(scene["warning"], 14)


def main() -> None:
    """Handle the arguments."""
    arguments = sys.argv[1:]
    scene = load_scene()
    wanted = arguments[arguments.index("-i") + 1] if "-i" in arguments else None
    with open(os.path.join(HERE, "calls"), "a", encoding="utf-8") as file:
        file.write(" ".join(arguments) + "\n")
    if arguments == ["-L"]:
        end(scene["listing"], 0)
    name, _, joined = arguments[0].partition("=")
    fields = joined.split(",")
    for field in fields:
        if field in scene.get("unknown_fields", []):
            end(f'Field "{field}" is not a valid field to query.\n\n', 2)
    print_table(name.removeprefix("--query-"), fields, wanted)


if __name__ == "__main__":
    main()

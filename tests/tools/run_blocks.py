"""Run the blocks of one page in order, in the current directory: run_blocks.py BLOCKS.json OUTPUTS.json PRELUDE.

All Python of a page is one program; each block of shell has a shell of its own, whose output is kept.
"""

from __future__ import annotations

import json
import subprocess
import sys
import traceback
from pathlib import Path


def main(blocks_file: str, outputs_file: str, prelude: str) -> int:
    """The exit code: 1 at the first block that fails."""
    sys.path.insert(0, str(Path.cwd()))  # as beside a program
    namespace = {"__name__": "__main__"}
    if prelude:
        exec(compile(Path(prelude).read_text(), prelude, "exec"), namespace)
    outputs: dict[str, str] = {}
    for block in json.loads(Path(blocks_file).read_text()):
        print(f"---- {block['place']}", flush=True)
        if block["file"]:
            Path(block["file"]).write_text(block["text"])
            Path(block["file"]).chmod(0o755)
        elif block["language"] == "python":
            try:
                exec(compile(block["text"], block["place"], "exec", dont_inherit=True), namespace)
            except BaseException:
                traceback.print_exc()
                return 1
        else:
            words = ["bash", "-e", "-c", block["text"]]
            done = subprocess.run(
                words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
            )
            print(done.stdout, flush=True)
            outputs[block["place"]] = done.stdout
            if done.returncode != block["exit_code"]:
                print(
                    f"{block['place']}: exit code {done.returncode}, not {block['exit_code']}",
                    file=sys.stderr,
                )
                return 1
    Path(outputs_file).write_text(json.dumps(outputs))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

"""Runs a notebook in a kernel of its own, and writes it with its outputs: python run_notebook.py IN OUT [--allow-errors]."""

from __future__ import annotations

import sys
from importlib import import_module


def main(source: str, target: str, *options: str) -> None:
    """From here rather than from a test, which would keep the sockets."""
    nbformat, nbclient = import_module("nbformat"), import_module("nbclient")
    notebook = nbformat.read(source, 4)
    client = nbclient.NotebookClient(notebook, timeout=120, allow_errors="--allow-errors" in options)
    try:
        client.execute()
    finally:
        nbformat.write(notebook, target)


if __name__ == "__main__":
    main(*sys.argv[1:])

"""The beginning of a program that holds memory on a simulated device, through a stand-in for PyTorch's allocator."""

from __future__ import annotations

from pathlib import Path

_TESTS = Path(__file__).parent
PRELUDE = f"""
import gc, json, os, subprocess, sys, threading, time
sys.path[:0] = [{str(_TESTS)!r}, {str(_TESTS / "stand_ins")!r}]
import gpu_tracker as gput
from nvml_simulator import Simulator
MIB = 2**20
def hold(in_use, held, context=600):
    import torch
    torch.cuda.hold(0, in_use * MIB, held * MIB)
    with Simulator.open() as hardware:
        hardware.set_process(0, os.getpid(), (held + context) * MIB)
"""

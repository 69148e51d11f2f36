"""What the reader has: the recordings of an array of four, whose tasks got the variables that Slurm sets."""

from __future__ import annotations

import os
import subprocess

for task in range(4):
    variables = {"SLURM_JOB_ID": f"{3 + task}", "SLURM_ARRAY_JOB_ID": "3", "SLURM_ARRAY_TASK_ID": f"{task}"}
    command = f"gpu-tracker run --say none --record runs -- python train.py --seed {task}"
    environment = {**os.environ, **variables, "SLURM_JOB_NAME": "sweep"}
    subprocess.run(command.split(), env=environment, check=True)

"""A job that grows, logs and goes on until somebody ends it, or five minutes have passed."""

import time

import gpu_tracker

held = []
for number in range(1500):
    with gpu_tracker.region("step"):
        held.append(bytes(200_000))
        time.sleep(0.2)
    gpu_tracker.log(loss=1 / (number + 1))

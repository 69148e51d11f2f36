"""Track every call of a function, and print one line about each."""

from __future__ import annotations

import gpu_tracker as gput


def one_line(tracker: gput.Tracker) -> None:
    usage = tracker.resource_usage
    if usage is not None:
        cpu, ram = usage.cpu_utilization.combined, usage.max_ram.combined
        print(f"{usage.compute_time.time:.2f} s, {cpu.mean_sum_percent:.0f} % CPU, {ram.total_rss:.0f} MB")


@gput.track(then=one_line, time_unit="seconds", ram_unit="megabytes", disable_logs=True)
def count_primes(limit: int) -> int:
    sieve = bytearray([1]) * (limit + 1)
    sieve[0:2] = b"\0\0"
    for number in range(2, int(limit**0.5) + 1):
        if sieve[number]:
            sieve[number * number :: number] = bytes(len(range(number * number, limit + 1, number)))
    return sum(sieve)


if __name__ == "__main__":
    for limit in (10_000, 1_000_000, 10_000_000):
        print(count_primes(limit), "primes up to", limit)

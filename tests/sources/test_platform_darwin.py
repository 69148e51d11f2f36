"""The structures of macOS's kernel, byte by byte as its headers lay them out."""

from __future__ import annotations

import struct
import sys

import pytest

from gpu_tracker.sources.platform.darwin import (
    Task,
    parse_arguments,
    parse_table,
    parse_task,
    parse_usage,
    read_table,
    read_usage,
)

# A clock of 24 MHz, as Apple's processors have.
SECONDS_PER_TICK = 125 / 3 / 1e9


def kinfo_proc(
    pid: int, parent: int, name: bytes, *, flags: int = 0x4004, state: int = 2, started: float = 1.5
) -> bytes:
    """`struct kinfo_proc` of sys/sysctl.h, with the alignment of the C compiler: `extern_proc`, then `eproc`."""
    seconds, microseconds = divmod(round(started * 1e6), 10**6)
    process = struct.pack(
        # Start; two pointers; flag, state, pid, two more; two pointers; four words; percentage; two pointers; two words;
        "@qi4x PP i c 3x i ii PP iiIi I4x PP II"
        # three times; three counters; flag, pointer, signals, pointer; hold count, three signal sets; priorities, name;
        " qi4x qi4x qi4x QQQ i4x P i4x P i III BBb 17s 4x"
        # two pointers; exit status, flags; pointer.
        " PP HH 4x P",
        *(
            seconds,
            microseconds,
            1,
            2,
            flags,
            bytes([state]),
            pid,
            3,
            4,
            5,
            6,
            7,
            8,
            9,
            10,
            11,
            12,
            13,
            14,
            15,
        ),
        *(
            16,
            0,
            17,
            0,
            18,
            0,
            19,
            20,
            21,
            22,
            23,
            24,
            25,
            26,
            27,
            28,
            29,
            30,
            31,
            5,
            name,
            32,
            33,
            34,
            35,
            36,
        ),
    )
    outside = struct.pack(
        "@PP 72s P IIII i4x iIh2x 16I i4x P 5i4x PPP iih2x ii4x P 8s i hhh2x i 12s 4i 4x",
        *(1, 2, b"lock", 3, 501, 501, 20, 20, 1, 1, 501, 1, *range(16), 0, 0, *range(5), 0, 0, 0),
        *(parent, pid, 0, 0, 0, 0, b"wait", 0, 0, 0, 0, 0, b"login", *range(4)),
    )
    assert len(process) == 296
    assert len(outside) == 352
    return process + outside


def rusage_info_v4(**fields: int) -> bytes:
    """`struct rusage_info_v4` of sys/resource.h: an identifier, then 35 counters."""
    names = (
        *("user_time", "system_time", "pkg_idle_wkups", "interrupt_wkups", "pageins", "wired_size"),
        *("resident_size", "phys_footprint", "proc_start_abstime", "proc_exit_abstime"),
        *("child_user_time", "child_system_time", "child_pkg_idle_wkups", "child_interrupt_wkups"),
        *("child_pageins", "child_elapsed_abstime", "diskio_bytesread", "diskio_byteswritten"),
        *("qos_default", "qos_maintenance", "qos_background", "qos_utility", "qos_legacy"),
        *("qos_user_initiated", "qos_user_interactive", "billed_system_time", "serviced_system_time"),
        *("logical_writes", "lifetime_max_phys_footprint", "instructions", "cycles", "billed_energy"),
        *("serviced_energy", "interval_max_phys_footprint", "runnable_time"),
    )
    values = {**dict.fromkeys(names, 10**15), **fields}
    return bytes(range(16)) + struct.pack("=35Q", *(values[name] for name in names))


def test_the_table_of_processes() -> None:
    """Each row has a process and its parent; the state tells a zombie, a flag whether it has its own program."""
    table = kinfo_proc(4711, 1, b"python3.12") + kinfo_proc(
        4712, 4711, b"a name of 16 let", flags=0x4, state=5, started=1_795_000_000.25
    )
    rows = [
        (row.pid, row.parent_pid, row.name, row[:2], row.is_zombie, row.is_forked_copy)
        for row in parse_table(table)
    ]
    assert rows == [
        (4711, 1, "python3.12", (1, 500_000), False, False),
        (4712, 4711, "a name of 16 let", (1_795_000_000, 250_000), True, True),
    ]


@pytest.mark.skipif(sys.platform == "darwin", reason="is about others")
def test_on_other_systems_there_is_none_of_it() -> None:
    """Which is one of the reasons that a source is passed over for."""
    with pytest.raises(OSError, match="no libproc"):
        read_table()
    with pytest.raises(OSError, match="no libproc"):
        read_usage(1)


def test_a_torn_row_is_none() -> None:
    """The kernel fills whole rows only."""
    assert parse_table(kinfo_proc(1, 0, b"launchd")[:-1]) == []
    assert parse_table(b"") == []


def test_what_a_process_has_used() -> None:
    """Times are in ticks of the machine; the children's are those of the ones that were waited for."""
    usage = rusage_info_v4(
        user_time=24_000_000,
        system_time=12_000_000,
        resident_size=300,
        proc_start_abstime=240_000_000,
        child_user_time=48_000_000,
        child_system_time=24_000,
        child_elapsed_abstime=7,
        lifetime_max_phys_footprint=400,
    )
    parsed = parse_usage(usage, SECONDS_PER_TICK)
    assert parsed[:2] == pytest.approx((1.5, 2.001))
    assert parsed[2:5] == (True, 300, 400)
    assert parsed.started_seconds == pytest.approx(10)
    alone = rusage_info_v4(child_elapsed_abstime=0)
    assert not parse_usage(alone, SECONDS_PER_TICK).has_reaped


def test_what_else_is_known_of_a_process_that_runs() -> None:
    """`struct proc_taskinfo` of sys/proc_info.h: six sizes and times, then twelve counters."""
    task = struct.pack("=6Q12i", 10**9, 1, 2, 3, 4, 5, 6, 70, 8, 9, 10, 11, 12, 13, 140, 15, 16, 17)
    assert parse_task(task) == Task(10**9, 70, 8, 140, 15)


@pytest.mark.parametrize(
    ("words", "padding"),
    [((b"python3", b"-c", b"print()"), 1), ((b"sh", b"", b"x y"), 5), ((b"a\xff",), 3), ((), 2)],
)
def test_arguments(words: tuple[bytes, ...], padding: int) -> None:
    """Their number, the program, zeros up to a word, the arguments, the environment."""
    content = struct.pack("=i", len(words)) + b"/usr/bin/program" + b"\0" * padding
    content += b"".join(word + b"\0" for word in words) + b"HOME=/Users/me\0"
    assert parse_arguments(content) == tuple(word.decode("utf-8", "replace") for word in words)

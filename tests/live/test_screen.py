"""The tables that `watch` draws."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gpu_tracker.core.observation import BROKEN, Holder, MachineState, Missing, Observation, VendorState
from gpu_tracker.core.text import CYAN, DIM, GREEN, PLAIN, RED, YELLOW, count_cells, paint
from gpu_tracker.live.choices import HELP, Choices, Extent, Prompt, Shown
from gpu_tracker.live.screen import Size, build_screen, measure
from gpu_tracker.live.selection import GPU, MEMORY, PID, USER, Selection
from observed import GIB, gpu, observation, process, reading, vendor

GOLDEN = Path(__file__).parent / "golden"
FRAMES = {
    "watch-80x24.txt": (Choices(), 80, 24),
    "watch-120x40.txt": (Choices(Selection(sort=MEMORY), first=3), 120, 40),
    "watch-200x50.txt": (Choices(Selection(users=("anna", "carla"))), 200, 50),
}
EIGHT_GPUS, DOZENS = range(8), range(100, 140)


def draw(
    before: Observation | None,
    now: Observation,
    choices: Choices = Choices(),  # noqa: B008 - immutable
    columns: int = 120,
    rows: int | None = None,
) -> list[str]:
    """The lines without their styles."""
    lines = build_screen(before, now, "title", choices, Size(columns, rows))
    return [paint(line, columns, has_colour=False).rstrip() for line in lines]


def find_styles(now: Observation, row: int, **chosen: Any) -> dict[str, str]:
    """The text of every cell in a line, with its style."""
    return {
        span.text.strip(): span.style
        for span in build_screen(None, now, "", Choices(**chosen), Size(120))[row]
    }


def busy_machine() -> Observation:
    """Eight GPUs with five processes each, of three users."""
    loads = (97.0, 100.0, 88.0, 12.0, 99.0, 100.0, 45.0, 0.0)
    limits: dict[int, tuple[str, ...] | None] = {0: ("power",), 1: ("power", "heat"), 3: None}
    readings = [
        reading(number, utilization_percent=load, power_watts=4 * load, limits=limits.get(number, ()))
        for number, load in enumerate(loads)
    ]
    processes = [process(pid % 8, pid, mib=pid * 10, percent=pid % 7 * 5.0) for pid in DOZENS]
    holders = tuple(
        Holder(pid, ("anna", "ben", "carla")[pid % 3], ("/opt/conda/bin/python", "train.py", f"--seed={pid}"))
        for pid in DOZENS
    )
    gpus = tuple(gpu(number, power_limit_watts=400.0) for number in EIGHT_GPUS)
    return observation(vendor(*readings, processes=tuple(processes), gpus=gpus), holders=holders)


@pytest.mark.parametrize("name", FRAMES)
def test_a_whole_screen_looks_like_this(name: str) -> None:
    """To see a change before users do; `GOLDEN` has what was looked at."""
    choices, columns, rows = FRAMES[name]
    lines = draw(None, busy_machine(), choices, columns, rows)

    assert "\n".join(lines) + "\n" == (GOLDEN / name).read_text("utf-8")


def test_the_screen_shows_machine_devices_and_processes() -> None:
    """In this order."""
    seen = vendor(reading(0), reading(1, used_bytes=0), processes=(process(),))

    assert draw(observation(seen, at=100.0), observation(seen, at=102.0)) == [
        "title",
        "CPU 50 % of 8 cores   RAM 25 % of 64 GB, 16 GB used",
        "",
        "GPU   MEMORY / MiB   MEM  BUSY  TEMP  POWER  THROTTLED  NAME",
        "  0  10240 / 40960  25 %  55 %  61 C  250 W  no         NVIDIA A100",
        "  1      0 / 40960   0 %  55 %  61 C  250 W  no         NVIDIA A100",
        "",
        "GPU   PID  USER   MiB    SM    CPU   RAM  COMMAND",
        "  0  4242  anna  1234  50 %  200 %  2 GB  python train.py",
    ]


def test_an_unknown_value_is_a_dash() -> None:
    """Not zero."""
    blind = reading(
        used_bytes=None, utilization_percent=None, temperature_celsius=None, power_watts=None, limits=None
    )
    seen = vendor(blind, processes=(process(pid=9, mib=None, percent=None),), gpus=(gpu(memory_bytes=None),))
    lines = draw(None, observation(seen, machine=MachineState(8, None)))

    assert lines[1] == "CPU - of 8 cores   RAM - of -, - used"
    assert lines[4].split() == ["0", "-", "/", "-", "-", "-", "-", "-", "-", "NVIDIA", "A100"]
    assert lines[7].split() == ["0", "9", "-", "-", "-", "-", "-", "-"]


def test_power_has_its_limit_and_throttling_its_reason() -> None:
    """A power limit is often intended; heat and the hardware's own brakes are not."""
    reasons = ((), ("power",), ("heat",), ("power", "heat"), None)
    readings = [reading(number, limits=limits) for number, limits in enumerate(reasons)]
    gpus = tuple(gpu(number, power_limit_watts=400.0) for number in range(len(reasons)))
    seen = observation(vendor(*readings, gpus=gpus))
    styles = [find_styles(seen, 4 + number) for number in range(len(reasons))]

    assert (
        draw(None, seen)[7] == "  3  10240 / 40960  25 %  55 %  61 C  250 / 400 W  power, heat  NVIDIA A100"
    )
    assert [
        style[word] for style, word in zip(styles, ("no", "power", "heat", "power, heat", "-"), strict=True)
    ] == [
        *(DIM, YELLOW, RED, RED, PLAIN),
    ]


@pytest.mark.parametrize(
    ("details", "power"),
    [
        ({}, "250 / 400 W"),
        ({"power.limit": 300.0}, "250 / 300 W"),
        ({"power.limit": 300.0, "enforced.power.limit": 280.0}, "250 / 280 W"),
        ({"power.limit": "N/A"}, "250 / 400 W"),
    ],
)
def test_the_power_limit_is_that_of_now(details: dict[str, Any], power: str) -> None:
    """It may be changed at any time; where it is not read again, it is as the device was found."""
    seen = vendor(reading(), gpus=(gpu(power_limit_watts=400.0),), details={"GPU-0": details})

    assert f" {power} " in draw(None, observation(seen))[4]


def test_missing_gpus_and_problems_are_reported() -> None:
    """With the command that shows more."""
    broken = VendorState("nvidia", missing=(Missing("nvml", BROKEN, "The driver\x1b[2J is broken."),))
    lines = draw(None, observation(broken))

    assert lines[3] == "No GPU could be read; `gpu-tracker doctor` shows why."
    assert "No GPU found; `gpu-tracker doctor`" in draw(None, observation(VendorState("nvidia")))[3]
    assert lines[4] == "note: The driver?[2J is broken."
    assert draw(None, observation(broken), columns=20)[4:6] == ["note: The driver?[2J", "  is broken."]


@pytest.mark.parametrize("columns", [1, 7, 20, 40, 79])
@pytest.mark.parametrize("rows", [None, 24])
def test_nothing_is_wider_than_the_terminal(columns: int, rows: int | None) -> None:
    """Including commands of ten kilobytes and wide characters."""
    holder = Holder(4242, "日本" * 9, ("日本語", "x" * 10_000), 1, 1.0)
    seen = observation(vendor(reading(), processes=(process(),)), holders=(holder,))

    assert all(count_cells(line) <= columns for line in draw(None, seen, columns=columns, rows=rows))


@pytest.mark.parametrize("rows", [0, 1, 2, 5, 6, 9, 15, 24, 50])
@pytest.mark.parametrize(
    "choices",
    [
        Choices(),
        Choices(has_help=True),
        Choices(Selection(users=("anna",)), first=99),
        Choices(prompt=Prompt(USER)),
    ],
)
def test_nothing_is_longer_than_the_terminal(rows: int, choices: Choices) -> None:
    """All rows are used, so that the keys are in the last one."""
    lines = draw(None, busy_machine(), choices, rows=rows)

    assert len(lines) == rows
    assert rows < 6 or lines[-1].startswith(("q quit  h help  s sort by GPU", "Only these users"))


def test_hostile_commands_are_harmless() -> None:
    """Escape sequences, newlines and bidirectional overrides do not reach the terminal."""
    holder = Holder(4242, "eve\x1b[31m", ("a\nb", "\x1b]0;title\x07", "\u202ereversed", "\x9b2J"), 1, 1.0)
    seen = observation(vendor(reading(), processes=(process(),)), holders=(holder,))
    lines = draw(None, seen)

    assert lines[-1].endswith("a?b ?]0;title? ?reversed ?2J")
    assert all(line.isprintable() for line in lines)
    typed = Choices(Selection(gpus=("\x1b[2J",)), prompt=Prompt(USER, "\x9b2J"))
    assert all(line.isprintable() for line in draw(None, seen, typed, rows=24))


def test_colours_show_how_busy_a_device_is() -> None:
    """Idle has none; a device that jobs cannot use is dim."""
    shades = {}
    for percent in (0.0, 10.0, 50.0, 99.0):
        seen = observation(vendor(reading(utilization_percent=percent), gpus=(gpu(is_visible=percent > 0),)))
        line = build_screen(None, seen, "", Choices(), Size(120))[4]
        shades[percent] = (line[3].style, line[-1].style)

    assert shades == {0.0: (PLAIN, DIM), 10.0: (GREEN, PLAIN), 50.0: (YELLOW, PLAIN), 99.0: (RED, PLAIN)}


# ---- More than fits.


def test_gpus_stay_and_processes_scroll() -> None:
    """Eight busy GPUs on the smallest usual terminal: all of them are seen, and nine processes at a time."""
    seen = busy_machine()
    top, below = (
        draw(None, seen, columns=80, rows=24),
        draw(None, seen, Choices(first=9), columns=80, rows=24),
    )

    assert top[:12] == below[:12]
    assert [line.split()[0] for line in top[3:12]] == ["GPU", *map(str, EIGHT_GPUS)]
    assert (top[12], below[12]) == ("Processes 1-9 of 40", "Processes 10-18 of 40")
    assert top[13] == below[13] == "GPU  PID  USER    MiB    SM  CPU  RAM  COMMAND"
    pids = [line.split()[1] for line in (*top[14:23], *below[14:23])]
    assert len(set(pids)) == 18
    assert (
        top[23]
        == below[23]
        == "q quit  h help  s sort by GPU  up down scroll  g GPU  u user  p PID  r reverse"
    )
    assert measure(seen, Choices(), Size(80, 24)) == Extent(40, 9)


def test_scrolling_ends_with_the_last_process() -> None:
    """Also if there were more when the user scrolled there."""
    lines = draw(None, busy_machine(), Choices(first=99), columns=80, rows=24)

    assert lines[12] == "Processes 32-40 of 40"
    assert lines[22].split()[1] == "103"


def test_columns_stay_in_their_places_when_one_scrolls() -> None:
    """They are as wide as those that are not visible need."""
    processes = (process(pid=7, mib=1), process(pid=1234567, mib=0))
    seen = observation(vendor(reading(), processes=processes), holders=())
    lines = draw(None, seen, rows=8)

    assert lines[-2] == "  0        7  -       1  50 %    -    -  -"


def test_processes_are_set_apart_where_there_is_room() -> None:
    """By an empty line, like GPUs."""
    lines = draw(None, busy_machine(), rows=40)

    assert (lines[2], lines[12], lines[13]) == ("", "", "Processes 1-24 of 40")
    assert draw(None, busy_machine(), rows=60)[13] == "40 processes"


def test_more_gpus_than_fit_are_counted() -> None:
    """On a low screen they come first, and processes have what is left."""
    lines = draw(None, busy_machine(), rows=14)

    assert lines[2].startswith("GPU   MEMORY")
    assert [line.split()[0] for line in lines[3:9]] == ["0", "1", "2", "3", "4", "5"]
    assert lines[9] == "(2 more GPUs; g chooses which to show)"
    assert lines[10] == "Processes 1-1 of 40"
    assert lines[-1].startswith("q quit")
    assert draw(None, busy_machine(), rows=8)[3:-1] == [
        "  0  10240 / 40960  25 %   97 %  61 C  388 / 400 W  power        NVIDIA A100",
        "  1  10240 / 40960  25 %  100 %  61 C  400 / 400 W  power, heat  NVIDIA A100",
        "(6 more GPUs; g chooses which to show)",
        "40 processes",
    ]


def test_the_empty_line_makes_room_for_the_last_gpu() -> None:
    """Before a GPU is left out."""
    lines = draw(None, busy_machine(), rows=17)

    assert [line.split()[0] for line in lines[2:11]] == ["GPU", *map(str, EIGHT_GPUS)]
    assert lines[11] == "Processes 1-3 of 40"


def test_long_notes_leave_room() -> None:
    """For a quarter of the screen at most."""
    missing = tuple(Missing("nvml", BROKEN, f"Reason {number}.") for number in range(30))
    lines = draw(None, observation(VendorState("amd", missing=missing)), rows=24)

    assert [line for line in lines if line.startswith("note:")] == [
        f"note: Reason {number}." for number in range(5)
    ]


@pytest.mark.parametrize(
    ("columns", "headings"),
    [
        (79, "GPU MEMORY / MiB MEM BUSY TEMP POWER THROTTLED NAME"),
        (66, "GPU MEMORY / MiB MEM BUSY TEMP POWER THROTTLED"),
        (60, "GPU MEMORY / MiB BUSY TEMP POWER THROTTLED"),
        (52, "GPU MEMORY / MiB BUSY POWER THROTTLED"),
        (41, "GPU MEMORY / MiB BUSY THROTTLED"),
        (30, "GPU MEMORY / MiB BUSY"),
    ],
)
def test_a_column_is_left_out_rather_than_cut(columns: int, headings: str) -> None:
    """The one that is missed least first."""
    assert " ".join(draw(None, busy_machine(), columns=columns)[3].split()) == headings


def test_the_name_of_the_vendor_makes_room_for_that_of_the_device() -> None:
    """If it would be cut."""
    seen = observation(vendor(reading(), gpus=(gpu(name="NVIDIA A100-SXM4-80GB", memory_bytes=80 * GIB),)))

    assert draw(None, seen, columns=79)[4].endswith("no         NVIDIA A100-SXM4-80GB")
    assert draw(None, seen, columns=72)[4].endswith("no         A100-SXM4-80GB")


# ---- What the user has chosen.


def test_the_column_that_is_sorted_by_is_marked() -> None:
    """And named in the last line."""
    by_memory = Selection(sort=MEMORY)
    lines = draw(None, busy_machine(), Choices(by_memory), columns=80, rows=24)

    assert [line.split()[1] for line in lines[14:17]] == ["139", "138", "137"]
    assert lines[-1] == "q quit  h help  s sort by memory  up down scroll  g GPU  u user  p PID"
    assert find_styles(busy_machine(), 13, selection=by_memory)["MiB"] == CYAN
    assert find_styles(busy_machine(), 13, selection=by_memory)["GPU"] == DIM
    turned = Choices(by_memory._replace(is_reversed=True))
    assert "s sort by memory, reversed  " in draw(None, busy_machine(), turned, rows=24)[-1]


@pytest.mark.parametrize(
    ("selection", "n_gpus", "caption"),
    [
        (Selection(users=("anna",)), 8, "Processes 1-9 of 13, 40 in all: user anna"),
        (Selection(gpus=("0", "GPU-1")), 2, "10 of 40 processes: GPU 0 GPU-1"),
        (
            Selection(gpus=("0",), users=("anna", "ben"), pids=(120, 105)),
            1,
            "1 of 40 processes: GPU 0, user anna ben, PID 120 105",
        ),
        (Selection(users=("zoe",)), 8, "0 of 40 processes: user zoe"),
    ],
)
def test_what_is_left_out_is_said(selection: Selection, n_gpus: int, caption: str) -> None:
    """Above the processes; a key shows everything again."""
    lines = draw(None, busy_machine(), Choices(selection), columns=80, rows=24)
    (place,) = [number for number, line in enumerate(lines) if line == caption]

    assert len([line for line in lines[3:place] if line.endswith("A100")]) == n_gpus
    assert "  a all  " in lines[-1]


def test_a_file_says_what_is_left_out() -> None:
    """All that is not left out is there."""
    lines = draw(None, busy_machine(), Choices(Selection(users=("anna",))))

    assert lines[12:14] == ["", "13 of 40 processes: user anna"]
    assert len(lines) == 15 + 13


def test_an_unknown_gpu_is_answered_by_those_there_are() -> None:
    """As it may be typed."""
    lines = draw(None, busy_machine(), Choices(Selection(gpus=("9", "x"))), rows=24)

    assert lines[3] == "There is no GPU 9, x; there are 0, 1, 2, 3, 4, 5, 6, 7."


@pytest.mark.parametrize(
    ("prompt", "line"),
    [
        (Prompt(GPU, "0 1"), "Only these GPUs (0, 1, 2, 3, 4, 5, 6, 7): 0 1   empty: all, Esc: cancel"),
        (Prompt(USER), "Only these users (anna, ben, carla):    empty: all, Esc: cancel"),
        (Prompt(PID, "1" * 200), f"Only these PIDs: {'1' * 20}   empty: all, Esc: cancel"),
    ],
)
def test_a_filter_is_typed_in_the_last_line(prompt: Prompt, line: str) -> None:
    """Beside what there is to choose from; of a long answer the end is seen."""
    assert draw(None, busy_machine(), Choices(prompt=prompt), columns=80, rows=24)[-1] == line


def test_a_prompt_leaves_room_for_the_answer() -> None:
    """Even beside many users, on a narrow terminal."""
    holders = tuple(Holder(pid, f"user{pid}") for pid in DOZENS)
    seen = busy_machine()._replace(holders=holders)
    line = draw(None, seen, Choices(prompt=Prompt(USER, "user139")), columns=60, rows=24)[-1]

    assert line == "Only these users (user100, user101, user102, us…): user139"


def test_the_help_names_every_key() -> None:
    """Whole sentences, on the smallest usual terminal."""
    lines = draw(None, busy_machine(), Choices(has_help=True), columns=80, rows=24)
    text = "\n".join(lines)

    assert all(f"\n  {key} " in text for key, _ in HELP)
    assert {key[0] for key, _ in HELP} >= {*"sgupahq"}
    assert "…" not in text
    assert lines[0] == "title"


@pytest.mark.parametrize(
    ("shown", "headings"),
    [
        (Shown(), "GPU PID USER MiB SM CPU RAM COMMAND"),
        (Shown(has_pid=False, has_user=False), "GPU MiB SM CPU RAM COMMAND"),
        (Shown(has_command=False), "GPU PID USER MiB SM CPU RAM"),
    ],
)
def test_columns_of_processes_can_be_chosen(shown: Shown, headings: str) -> None:
    """Numbers are below each other also if they are last."""
    holders = (Holder(1, "anna", ("a",), 10**9, 1.0), Holder(2, "ben", ("b",), 10**10, 1.0))
    seen = observation(vendor(reading(), processes=(process(pid=1), process(pid=2))), holders=holders)
    lines = draw(None, seen, Choices(shown=shown))

    assert lines[6].split() == headings.split()
    assert lines[7].index("1 GB") == lines[8].index("10 GB") + 1


@pytest.mark.parametrize(
    ("command", "short"),
    [
        (("/opt/conda/bin/python", "/data/train.py"), "python /data/train.py"),
        (("./run", "x"), "run x"),
        (("python", "a"), "python a"),
        (("/bin/a title of /its own",), "/bin/a title of /its own"),
        ((), "-"),
        (None, "-"),
    ],
)
def test_a_command_begins_with_the_name_of_its_program(command: tuple[str, ...] | None, short: str) -> None:
    """Without its directory, unless that is wanted, or it is not a path."""
    holder = Holder(4242, "anna", command)
    seen = observation(vendor(reading(), processes=(process(),)), holders=(holder,))
    whole = draw(None, seen, Choices(shown=Shown(has_directory=True)))[-1]

    assert draw(None, seen)[-1].endswith(f"  -  {short}")
    assert whole.endswith(f"  -  {' '.join(command or ()) or '-'}")


def test_more_figures_of_devices() -> None:
    """Where they are known."""
    details = {"GPU-0": {"fan.speed": 30, "utilization.encoder": 5.0, "utilization.decoder": "odd"}}
    seen = observation(vendor(reading(), details=details))
    lines = draw(None, seen, Choices(shown=Shown(has_fan=True, has_codec=True)))

    assert lines[3].endswith("THROTTLED   FAN  ENC  DEC  NAME")
    assert lines[4].endswith("no         30 %  5 %    -  NVIDIA A100")


def test_title_and_processes_can_be_left_out() -> None:
    """Then there is nothing to scroll."""
    bare = Choices(shown=Shown(has_title=False, has_processes=False))
    lines = draw(None, busy_machine(), bare, rows=24)

    assert lines[0].startswith("CPU ")
    assert not any("train.py" in line for line in lines)
    assert "scroll" not in lines[-1]
    assert measure(busy_machine(), bare, Size(80, 24)).n_processes == 0
    assert len(draw(None, busy_machine(), bare)) == 11


def test_an_idle_machine_has_no_table_of_processes() -> None:
    """Nor an empty line for one."""
    assert draw(None, observation(vendor(reading())))[-1].endswith("NVIDIA A100")
    assert draw(None, observation(vendor(reading())), rows=8)[5:7] == ["", ""]

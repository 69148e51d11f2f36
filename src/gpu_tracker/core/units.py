"""Numbers for people: the units a user may ask for, and those that a report chooses. Pure."""

from __future__ import annotations

from .errors import UsageError

SECONDS, BYTES, RATE, PERCENT, JOULES = "seconds", "bytes", "bytes per second", "percent", "joules"
CORES, COUNT, NUMBER = "cores", "count", "number"
WATTS, CELSIUS, MEGAHERTZ, TEXT = "watts", "degrees Celsius", "MHz", "text"

BYTES_PER_UNIT = {
    "bytes": 1,
    "kilobytes": 10**3,
    "megabytes": 10**6,
    "gigabytes": 10**9,
    "terabytes": 10**12,
    "kibibytes": 2**10,
    "mebibytes": 2**20,
    "gibibytes": 2**30,
    "tebibytes": 2**40,
}
SECONDS_PER_UNIT = {"seconds": 1, "minutes": 60, "hours": 3600, "days": 86400}

# The kernel counts pages per core and adds them up later, so its figures of one amount differ by a little.
AS_GOOD_AS = 0.99

_KIB = 2**10
_LARGEST_READABLE = 999_999_999.5
_BYTES_PER_SHORT_UNIT = {
    "B": 1,
    "kB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
    "MiB": 2**20,
    "GiB": 2**30,
}
_BINARY_UNITS = frozenset(unit for unit in BYTES_PER_UNIT if "bi" in unit)


def check_memory_unit(unit: object, label: str) -> None:
    """Refuse an unknown unit of memory, and list the known ones."""
    if not isinstance(unit, str) or unit not in BYTES_PER_UNIT:
        raise UsageError(
            f'"{unit}" is not a valid {label} unit. Valid values are '
            f"{', '.join(sorted(BYTES_PER_UNIT.keys() - _BINARY_UNITS))} "
            f"(and {', '.join(sorted(_BINARY_UNITS))})"
        )


def check_time_unit(unit: object) -> None:
    """Refuse an unknown unit of time, and list the known ones."""
    if not isinstance(unit, str) or unit not in SECONDS_PER_UNIT:
        raise UsageError(
            f'"{unit}" is not a valid time unit. Valid values are {", ".join(sorted(SECONDS_PER_UNIT))}'
        )


def humanize(value: float | None, unit: str) -> str:
    """A figure as text; `-` if it is not known."""
    if value is None:
        return "-"
    if unit == SECONDS:
        return humanize_seconds(value)
    if unit == BYTES:
        return humanize_bytes(value)
    if unit == RATE:
        return f"{humanize_bytes(value)}/s"
    if unit == JOULES:
        return humanize_joules(value)
    if unit == PERCENT:
        return humanize_percent(value)
    if unit == COUNT:
        return f"{value:,.0f}"
    return f"{value:.3g}" if unit == CORES else f"{value:.6g}"


def humanize_bytes(count: float) -> str:
    """Three significant digits in the decimal unit that keeps the number readable."""
    for unit in ("B", "kB", "MB", "GB"):
        if abs(count) < 999.5:
            return f"{_three_digits(count)} {unit}"
        count /= 1000
    return f"{_three_digits(count)} TB"


def humanize_limit(count: int) -> str:
    """Like `humanize_bytes`, but in binary units for a whole number of MiB: that is how limits are set."""
    if not count or count % 2**20:
        return humanize_bytes(count)
    return f"{count / 2**30:.4g} GiB" if count >= 2**30 else f"{count // 2**20} MiB"


def format_size(size_bytes: int, units: str | tuple[str, ...]) -> str:
    """A whole number of the largest binary unit that gives one; `units` are KiB, MiB and so on, as a scheduler writes them."""
    count, unit = size_bytes // _KIB, 0
    while count and count % _KIB == 0 and unit + 1 < len(units):
        count, unit = count // _KIB, unit + 1
    return f"{count}{units[unit]}"


def humanize_joules(joules: float) -> str:
    """Joules up to 36 kJ, then Wh or kWh, as on an electricity bill."""
    if joules < 3.6e4:
        return f"{_three_digits(joules)} J"
    return f"{_three_digits(joules / 3.6e3)} Wh" if joules < 3.6e6 else f"{_three_digits(joules / 3.6e6)} kWh"


def format_cores(percent: float) -> str:
    """Percent of one core as cores: 642 becomes 6.4. What is little is not nothing."""
    cores = f"{round(percent / 100, 1 if percent >= 100 else 2):g}"
    return "<0.01" if cores == "0" and percent > 0 else cores


def humanize_cores(percent: float) -> str:
    """The same with the word: 100 becomes `1 core`."""
    return _add_cores(format_cores(percent))


def count_cores(number: float) -> str:
    """How many there are, or may be used: `1 core`, `1.5 cores`."""
    return _add_cores(f"{number:g}")


def _add_cores(number: str) -> str:
    return f"{number} core{'' if number == '1' else 's'}"


def humanize_seconds(seconds: float) -> str:
    """Seconds below two minutes, then minutes, hours and days with their remainder."""
    if seconds < 119.5:
        return f"{_three_digits(seconds)} s"
    minutes, whole_seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    if days:
        return f"{days} d {hours:02d} h {minutes:02d} min"
    if hours:
        return f"{hours} h {minutes:02d} min {whole_seconds:02d} s"
    return f"{minutes} min {whole_seconds:02d} s"


def approximate_seconds(seconds: float) -> str:
    """For what nobody knows exactly: `45 s`, `38 min`, `3 h 10 min`, `4 d 02 h`."""
    if seconds < 119.5:
        return f"{seconds:.0f} s"
    hours, minutes = divmod(round(seconds / 60), 60)
    days, hours = divmod(hours, 24)
    if days:
        return f"{days} d {hours:02d} h"
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min"


def write_clock(seconds: float) -> str:
    """A moment of a run: `12.3 s`, `3:12` or `26:03:12`."""
    if seconds < 59.5:
        return humanize_seconds(seconds)
    minutes, whole_seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{whole_seconds:02d}" if hours else f"{minutes}:{whole_seconds:02d}"


def write_stopwatch(seconds: float) -> str:
    """How long a run has lasted, always with hours: `0:12:05`."""
    minutes, whole_seconds = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{whole_seconds:02d}"


def humanize_part(part: float, whole: int) -> str:
    """A part of a limit, in the unit of the limit unless it is too small for that: `11.2 of 32 GiB`."""
    size, unit = humanize_limit(whole).split()
    number = part / _BYTES_PER_SHORT_UNIT[unit]
    return f"{_three_digits(number) if number >= 0.1 else humanize_bytes(part)} of {size} {unit}"


def humanize_percent(percent: float) -> str:
    """A whole number; of what no share can be, only the size."""
    return f"{percent:.0f} %" if abs(percent) < 999_999.5 else f"{percent:.0e} %"


def humanize_share(percent: float) -> str:
    """The same of what was used: little is not nothing."""
    return "<1 %" if 0 < percent <= 0.5 else humanize_percent(percent)


def humanize_number(number: float) -> str:
    """Three significant digits, and all of a larger number that is still readable."""
    return f"{number:.0f}" if 999.5 <= abs(number) < _LARGEST_READABLE else f"{number:.3g}"


def _three_digits(number: float) -> str:
    if abs(number) >= 100 or number == 0:
        return f"{number:.0f}"
    return f"{number:.3g}" if abs(number) >= 0.01 else f"{number:.4f}"


def parse_count(text: str | None, most_digits: int = 15) -> int | None:
    """A whole number from a variable or a file; None for anything else."""
    is_number = text is not None and text.isascii() and text.isdecimal() and len(text) <= most_digits
    return int(text) if text is not None and is_number else None


def parse_kib_field(text: bytes, field: bytes) -> int | None:
    """Bytes of a `Field:   123 kB` line; None if there is none (as for a zombie)."""
    start = text.find(field)
    if start < 0:
        return None
    return int(text[start + len(field) :].split(maxsplit=1)[0]) * 1024

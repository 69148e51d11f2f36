"""NVIDIA, through its command nvidia-smi: for where the driver's library cannot be loaded into our process.

Starting nvidia-smi costs some 15 ms each time, so two of them stay: one prints every device in rounds, the other
every process that computes there. `read` takes what has arrived and never waits.

The second prints nothing while nobody computes, so its silence has two meanings. It means *nobody* only while the
kernel sees the program go to sleep again and again, as one does that goes round; a program that is gone, or hangs
in the driver, means *not known*. Its rounds are told apart by their time stamps, and a process counts while it was
in one of the latest two: the latest may have arrived in part only.
"""

from __future__ import annotations

import os

from ...core.model import Gpu, GpuProcessReading, GpuReading, GpuReadings
from ...core.values import NamedTuple
from .. import NotAvailableError
from ..command import Command, run
from .guard import LOST, TROUBLE, UNSUPPORTED, Failure, Guard
from .nvidia import SMI, find_smi
from .smi_text import (
    APP_FIELDS,
    FIELD,
    FIGURES,
    HANDLE,
    INVENTORY_FIELDS,
    NO_DEVICES,
    OTHER,
    READING_FIELDS,
    SOURCE,
    App,
    drop_field,
    explain_absence,
    explain_cell,
    is_device,
    parse_app,
    parse_complaint,
    parse_details,
    parse_gpu,
    parse_listing,
    parse_reading,
    parse_row,
    parse_rows,
    shorten,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

NAME = SOURCE

_PATIENCE_SECONDS = 15.0  # without persistence mode, a driver takes seconds to wake all its devices
_PROBED_AT_ONCE = 8

_FIRST_PAUSE_SECONDS = 1.0
_LONGEST_PAUSE_SECONDS = 60.0
_STEADY_SECONDS = 60.0  # one that has run so long has recovered
_HANG_SECONDS = 30.0
_ROUNDS_LEFT_OUT = 5
_MOST_WORDS = 20
_LONGEST_LINE_BYTES = 1 << 16


def why_absent() -> str | None:
    """A reason not to try, or None. Cheap: most machines have no such program."""
    if find_smi() is None:
        return f"No NVIDIA GPU was measured: there is no {SMI} on the PATH; it comes with NVIDIA's driver."
    if not hasattr(os, "posix_spawn"):
        return f"No NVIDIA GPU was measured: {SMI} can be followed on Linux and the like only."
    return None


def connect(
    now: Callable[[], float],
    interval_seconds: float = 0.25,
    patience_seconds: float = _PATIENCE_SECONDS,
) -> NvidiaSmiSource:
    """Find the devices and have them printed in rounds, or say why not.

    It takes at most four times the patience, and only where devices hang.
    """
    reason = why_absent()
    program = find_smi()
    if reason is not None or program is None:
        raise NotAvailableError(reason or f"No NVIDIA GPU was measured: {SMI} has just gone.")
    try:
        inventory = _take_inventory(program, patience_seconds)
        return NvidiaSmiSource(program, inventory, now, interval_seconds)
    except OSError as error:
        raise NotAvailableError(
            f"No NVIDIA GPU was measured: {SMI} cannot be started ({error.strerror})."
        ) from None


# ---- What there is.


class _Inventory(NamedTuple):
    gpus: tuple[Gpu, ...]
    rows: tuple[dict[str, str], ...]
    """The first round, so that the first look has something to show."""
    fields: tuple[str, ...]
    """Those for the running table that this version knows."""
    unknown: tuple[str, ...]
    apps: tuple[App, ...]
    app_fields: tuple[str, ...]
    app_complaint: str | None
    is_one_by_one: bool
    """One device spoils the table of all, so each is asked for on its own."""
    notes: tuple[str, ...]


def _take_inventory(program: str, patience_seconds: float) -> _Inventory:
    fields, text = _query(program, "gpu", (*READING_FIELDS, *INVENTORY_FIELDS), patience_seconds)
    rows = parse_rows(text or "", fields)
    is_one_by_one = not rows and (text is None or parse_complaint(text).kind == HANDLE)
    notes: tuple[str, ...] = ()
    if is_one_by_one:
        rows, notes = _probe_each(program, fields, patience_seconds)
    if not rows:
        raise NotAvailableError(explain_absence(text, patience_seconds))
    gpus = tuple(parse_gpu(row) for row in rows)
    if any(row.get("mig.mode.current") == "Enabled" for row in rows):
        listing = run([[program, "-L"]], patience_seconds)[0] or ""
        gpus += _list_instances(gpus, listing)
    app_fields, app_text = _query(program, "compute-apps", APP_FIELDS, patience_seconds)
    app_rows = parse_rows(app_text or "", app_fields)
    asked = {*READING_FIELDS, *INVENTORY_FIELDS}
    return _Inventory(
        gpus,
        tuple(rows),
        tuple(field for field in fields if field not in INVENTORY_FIELDS),
        tuple(sorted(asked.difference(fields))),
        tuple(parse_app(row) for row in app_rows),
        app_fields,
        _find_app_complaint(app_text, app_rows),
        is_one_by_one,
        notes,
    )


def _find_app_complaint(text: str | None, rows: list[dict[str, str]]) -> str | None:
    if text is None:
        return "nothing, and hangs"
    return None if rows else shorten(text) or None


def _query(
    program: str, subject: str, fields: tuple[str, ...], patience_seconds: float
) -> tuple[tuple[str, ...], str | None]:
    """The answer, and the fields that it has: those that this version does not know are given up one by one."""
    while True:
        text = run([_compose(program, subject, fields)], patience_seconds)[0]
        complaint = parse_complaint(text or "")
        fewer = drop_field(fields, complaint.subject) if complaint.kind == FIELD else None
        if fewer is None:
            return fields, text
        fields = fewer


def _compose(program: str, subject: str, fields: tuple[str, ...], *more: str) -> list[str]:
    return [program, f"--query-{subject}={','.join(fields)}", "--format=csv,noheader,nounits", *more]


def _probe_each(
    program: str, fields: tuple[str, ...], patience_seconds: float
) -> tuple[list[dict[str, str]], tuple[str, ...]]:
    """The rows of the devices that can be read, and what is to be said of the others."""
    rows: list[dict[str, str]] = []
    notes: list[str] = []
    first = 0
    while True:
        numbers = range(first, first + _PROBED_AT_ONCE)
        commands = [_compose(program, "gpu", fields, "-i", str(number)) for number in numbers]
        answers = run(commands, patience_seconds)
        for number, text in zip(numbers, answers, strict=True):
            found = parse_rows(text or "", fields)
            complaint = parse_complaint(text or "")
            rows += found
            if text is None:
                notes.append(f"GPU {number} is not measured: {SMI} hangs when asked about it.")
            elif not found and complaint.kind in {NO_DEVICES, OTHER}:
                return rows, tuple(notes)  # beyond the last
            elif not found:
                notes.append(f"GPU {number} is not measured: {SMI} said: {shorten(complaint.words)}.")
        if not any(answers):
            return rows, tuple(notes)
        first += _PROBED_AT_ONCE


def _list_instances(gpus: tuple[Gpu, ...], listing: str) -> tuple[Gpu, ...]:
    parents = {gpu.uuid: gpu for gpu in gpus}
    return tuple(
        parents[listed.parent_uuid]._replace(
            ordinal=listed.ordinal,
            uuid=listed.uuid,
            name=listed.name,
            memory_bytes=None,
            parent_uuid=listed.parent_uuid,
        )
        for listed in parse_listing(listing)
        if listed.parent_uuid in parents
    )


# ---- What runs.


class _Stream:
    """One nvidia-smi that goes round, restarted when it ends, later and later."""

    def __init__(self, subject: str, arguments: list[str], gpu: Gpu | None, now_seconds: float) -> None:
        self.subject = subject
        self.gpu = gpu
        """The only device it tells of; None for all."""
        self._arguments = arguments
        self._command: Command | None = None
        self._pause_seconds = _FIRST_PAUSE_SECONDS / 2
        self._resume_seconds = now_seconds
        self._unfinished = b""
        self._sleeps: int | None = None
        self.words: list[str] = []
        """What it has printed that was no row."""
        self.started_seconds = self.heard_seconds = self.moved_seconds = now_seconds
        self.suspected_seconds: float | None = None

    @property
    def is_running(self) -> bool:
        return self._command is not None

    def start_if_due(self, now_seconds: float) -> None:
        if self._command is None and now_seconds >= self._resume_seconds:
            self._unfinished = b""
            self._sleeps = None
            self.words = []
            self.started_seconds = self.moved_seconds = now_seconds
            self.suspected_seconds = None
            try:
                self._command = Command(self._arguments)
            except OSError as error:
                self.words = [error.strerror or "it cannot be started"]

    def take_lines(self) -> list[str]:
        """The lines that are complete: newer versions write a line in pieces."""
        if self._command is None:
            return []
        *lines, rest = (self._unfinished + self._command.take()).split(b"\n")
        if self._command.has_ended and rest:
            lines.append(rest)
            rest = b""
        self._unfinished = rest if len(rest) <= _LONGEST_LINE_BYTES else b""
        return [line.decode("utf-8", "replace") for line in lines]

    def has_ended(self) -> bool:
        return self._command is None or self._command.has_ended

    def is_going_round(self, now_seconds: float, within_seconds: float) -> bool:
        """Whether it has slept and woken of late."""
        if self._command is None:
            return False
        sleeps = self._command.count_sleeps()
        if sleeps is None or sleeps != self._sleeps:
            self._sleeps = sleeps
            self.moved_seconds = now_seconds
        return now_seconds - self.moved_seconds <= within_seconds

    def give_up(self, now_seconds: float) -> Command | None:
        """Stop it until it is due again; what must still be waited for is given back."""
        if now_seconds - self.started_seconds >= _STEADY_SECONDS:
            self._pause_seconds = _FIRST_PAUSE_SECONDS / 2
        self._pause_seconds = min(2 * self._pause_seconds, _LONGEST_PAUSE_SECONDS)
        self._resume_seconds = now_seconds + self._pause_seconds
        command, self._command = self._command, None
        if command is not None:
            command.stop()
        return command


class _Listed(NamedTuple):
    """A process in one round of a table."""

    round: int
    stamp: float
    used_bytes: int | None


class _AppTable:
    """Who computes, as far as one stream has told."""

    def __init__(self, interval_seconds: float, window_seconds: float) -> None:
        self._interval_seconds = interval_seconds
        self._window_seconds = window_seconds
        self._round = 0
        self._round_stamp = self._stamp = float("-inf")
        self._listed: dict[tuple[str, int], _Listed] = {}

    def add(self, uuid: str, pid: int, used_bytes: int | None, stamp: float) -> None:
        key = (uuid, pid)
        before = self._listed.get(key)
        is_repeated = before is not None and before.round == self._round
        since_round = stamp - self._round_stamp
        # The rows of a round have (almost) one stamp.
        if since_round != 0 and (is_repeated or not 0 <= since_round <= self._interval_seconds / 2):
            self._round += 1
            self._round_stamp = stamp
        elif before is not None and is_repeated and before.used_bytes is not None:
            used_bytes = max(before.used_bytes, used_bytes or 0)
        self._stamp = stamp
        self._listed[key] = _Listed(self._round, stamp, used_bytes)

    def list_latest(self) -> dict[tuple[str, int], int | None]:
        """By device and pid, of the latest two rounds; older ones are forgotten."""
        self._listed = {
            key: listed
            for key, listed in self._listed.items()
            if listed.round >= self._round - 1 and abs(self._stamp - listed.stamp) <= self._window_seconds
        }
        return {key: listed.used_bytes for key, listed in self._listed.items()}

    def clear(self) -> None:
        self._listed.clear()


class NvidiaSmiSource:
    """Every NVIDIA device that nvidia-smi tells of."""

    def __init__(
        self, program: str, inventory: _Inventory, now: Callable[[], float], interval_seconds: float
    ) -> None:
        self.gpus = inventory.gpus
        self._program = program
        self._inventory = inventory
        self._now = now
        self._interval_seconds = interval_seconds
        # What is older than two rounds and a busy machine's second is no news any more.
        self._window_seconds = 2 * interval_seconds + 1.0
        self._guard = Guard(now, (), lambda error, _device, _what: Failure(TROUBLE, str(error)))
        self.reasons: Mapping[tuple[str, str], str] = self._guard.reasons
        self.kinds: Mapping[tuple[str, str], str] = self._guard.kinds
        self._wholes = {gpu.uuid: gpu for gpu in self.gpus if gpu.parent_uuid is None}
        self._latest: dict[str, tuple[float, GpuReading]] = {}
        self._details: dict[str, Mapping[str, float | str]] = {}
        self._utilizations: dict[str, list[float]] = {}
        self._rows_of_others: dict[str, int] = {}
        self._streams: list[_Stream] = []
        self._tables: dict[_Stream, _AppTable] = {}
        self._leaving: list[Command] = []
        self._say_what_is_missing()
        at_seconds = now()
        for row in inventory.rows:
            self._accept_reading(row, at_seconds)
        if inventory.is_one_by_one:
            self._open_streams(list(self._wholes.values()), at_seconds)
        else:
            self._open_streams([None], at_seconds)
        for app in inventory.apps:
            for stream, table in self._tables.items():
                self._accept_app(stream, table, app, at_seconds)

    def read(self, pids: frozenset[int] | None) -> GpuReadings:
        """Take what has arrived."""
        at_seconds = self._now()
        for stream in tuple(self._streams):
            if stream in self._streams:
                self._listen(stream, at_seconds)
        self._leaving = [command for command in self._leaving if not command.is_gone()]
        telling: set[str] = set()
        processes: dict[tuple[str, int], int | None] = {}
        for stream, table in self._tables.items():
            key = (stream.gpu.uuid if stream.gpu else "", "lists_processes")
            if self._knows_processes(stream, table, at_seconds):
                telling |= {stream.gpu.uuid} if stream.gpu else set(self._wholes)
                processes |= table.list_latest()
                self._guard.reasons.pop(key, None)
            else:
                self._guard.reasons.setdefault(
                    key, f"{SMI} does not tell at present which processes use the NVIDIA GPUs."
                )
        devices = (self._take_reading(gpu, at_seconds, telling) for gpu in self._wholes.values())
        return GpuReadings(
            at_seconds,
            tuple(reading for reading in devices if reading is not None),
            tuple(
                GpuProcessReading(uuid, pid, used_bytes)
                for (uuid, pid), used_bytes in processes.items()
                if uuid not in self._guard.lost and (pids is None or pid in pids)
            ),
        )

    def read_details(self) -> Mapping[str, Mapping[str, float | str]]:
        """As of the latest round."""
        return {uuid: details for uuid, details in self._details.items() if uuid not in self._guard.lost}

    def take_notes(self) -> tuple[str, ...]:
        """What there is to say since the last call."""
        return self._guard.take_notes()

    def close(self) -> None:
        """End every nvidia-smi."""
        self._end_streams(self._now())
        for command in self._leaving:
            command.close()
        self._leaving = []

    # ---- Starting and ending.

    def _open_streams(self, gpus: list[Gpu] | list[None], at_seconds: float) -> None:
        for gpu in gpus:
            loop = ["-lms", str(max(1, round(1000 * self._interval_seconds)))]
            if gpu is not None:
                loop += ["-i", str(gpu.ordinal)]
            arguments = _compose(self._program, "gpu", self._inventory.fields, *loop)
            self._streams.append(_Stream("gpu", arguments, gpu, at_seconds))
            arguments = _compose(self._program, "compute-apps", self._inventory.app_fields, *loop)
            apps = _Stream("compute-apps", arguments, gpu, at_seconds)
            if self._inventory.app_complaint is not None:
                apps.heard_seconds = float("-inf")
            self._streams.append(apps)
            self._tables[apps] = _AppTable(self._interval_seconds, self._window_seconds)
        for stream in self._streams:
            stream.start_if_due(at_seconds)

    def _end_streams(self, at_seconds: float) -> None:
        for stream in self._streams:
            self._give_up(stream, at_seconds)
        self._streams = []
        self._tables = {}

    def _give_up(self, stream: _Stream, at_seconds: float) -> None:
        command = stream.give_up(at_seconds)
        if command is not None:
            self._leaving.append(command)
        if stream in self._tables:
            self._tables[stream].clear()

    def _listen(self, stream: _Stream, at_seconds: float) -> None:
        stream.start_if_due(at_seconds)
        table = self._tables.get(stream)
        fields = self._inventory.fields if table is None else self._inventory.app_fields
        for line in stream.take_lines():
            row = parse_row(line, fields)
            if row is None:
                stream.words = [*stream.words, line][-_MOST_WORDS:]
                continue
            stream.heard_seconds = at_seconds
            if table is None:
                self._accept_reading(row, at_seconds)
            else:
                self._accept_app(stream, table, parse_app(row), at_seconds)
        if stream.is_running and stream.has_ended():
            self._mourn(stream, at_seconds)
        elif stream.is_running and self._is_hanging(stream, at_seconds):
            self._guard.say("", stream.subject, self._describe_gap(stream, "did not go on"))
            self._give_up(stream, at_seconds)
        elif not stream.is_running and stream.words and stream in self._streams:
            self._mourn(stream, at_seconds)  # it could not be started

    def _is_hanging(self, stream: _Stream, at_seconds: float) -> bool:
        is_silent = at_seconds - max(stream.heard_seconds, stream.started_seconds) > _HANG_SECONDS
        # Silence of the table of processes is no sign by itself.
        if not is_silent or (stream in self._tables and stream.is_going_round(at_seconds, _HANG_SECONDS)):
            stream.suspected_seconds = None
            return False
        # We may have been stopped ourselves, and the program with us: it gets a moment to go on.
        if stream.suspected_seconds is None:
            stream.suspected_seconds = at_seconds
        return at_seconds - stream.suspected_seconds > self._window_seconds

    def _mourn(self, stream: _Stream, at_seconds: float) -> None:
        """One has ended by itself: find out why, and go on with what can still be read."""
        complaint = parse_complaint("\n".join(stream.words))
        stream.words = []
        self._give_up(stream, at_seconds)
        if complaint.kind != HANDLE:
            self._guard.say("", stream.subject, self._describe_gap(stream, "ended", complaint.words))
            return
        concerned = [stream.gpu] if stream.gpu else list(self._wholes.values())
        about = [gpu for gpu in concerned if stream.gpu or is_device(gpu, complaint.subject)]
        for gpu in about:
            if "lost" in complaint.words.lower():
                self._lose(gpu, explain_cell(f"GPU {gpu.ordinal}", "state", "[GPU is lost]"))
            else:
                words = f"GPU {gpu.ordinal} could not be read for a while: {shorten(complaint.words)}."
                self._guard.say(gpu.uuid, TROUBLE, words)
        if stream.gpu is None:
            self._end_streams(at_seconds)
            healthy = [gpu for uuid, gpu in self._wholes.items() if uuid not in self._guard.lost]
            self._open_streams(healthy, at_seconds)

    def _lose(self, gpu: Gpu, failure: Failure) -> None:
        self._guard.fail(gpu.uuid, "used_bytes", failure)
        for stream in [stream for stream in self._streams if stream.gpu == gpu]:
            self._give_up(stream, self._now())
            self._streams.remove(stream)
            self._tables.pop(stream, None)

    def _describe_gap(self, stream: _Stream, what: str, words: str = "") -> str:
        of = "devices" if stream.subject == "gpu" else "processes on them"
        said = f" ({shorten(words)})" if words else ""
        return (
            f"The {SMI} that tells of the NVIDIA {of} {what}{said} and is started again; "
            "meanwhile there is a gap in the figures."
        )

    # ---- Taking in.

    def _accept_reading(self, row: Mapping[str, str], at_seconds: float) -> None:
        gpu = self._wholes.get(row["uuid"]) or next(
            (gpu for gpu in self._wholes.values() if gpu.ordinal == int(row["index"])), None
        )
        if gpu is None or gpu.uuid in self._guard.lost:
            return
        reading, refusals = parse_reading(row, gpu.uuid)
        refused = dict(refusals)
        for figure in FIGURES:
            if figure in refused:
                failure = explain_cell(f"GPU {gpu.ordinal}", figure.words, refused[figure])
                if failure.kind == LOST:
                    self._lose(gpu, failure)
                    return
                self._guard.fail(gpu.uuid, figure.name, failure)
            else:
                self._guard.reasons.pop((gpu.uuid, figure.name), None)
        self._latest[gpu.uuid] = (at_seconds, reading)
        for uuid in self._wholes:
            self._rows_of_others[uuid] = 0 if uuid == gpu.uuid else self._rows_of_others.get(uuid, 0) + 1
        self._details[gpu.uuid] = parse_details(row)
        if reading.utilization_percent is not None:
            self._utilizations.setdefault(gpu.uuid, []).append(reading.utilization_percent)

    def _accept_app(self, stream: _Stream, table: _AppTable, app: App, at_seconds: float) -> None:
        uuid = self._find_device(app.uuid)
        if uuid is None or (stream.gpu is not None and uuid != stream.gpu.uuid):
            return
        if app.used_bytes is None:
            self._guard.fail(uuid, "process_used_bytes", self._explain_unknown_use(uuid))
        else:
            self._guard.reasons.pop((uuid, "process_used_bytes"), None)
        table.add(uuid, app.pid, app.used_bytes, at_seconds if app.stamp is None else app.stamp)

    def _find_device(self, uuid: str) -> str | None:
        """Ours for theirs: an instance that is not listed stands for its parent, if its old name tells that."""
        if any(gpu.uuid == uuid for gpu in self.gpus):
            return uuid
        parent = uuid.removeprefix("MIG-").partition("/")[0]
        return parent if parent in self._wholes else None

    def _explain_unknown_use(self, uuid: str) -> Failure:
        label = next((f"GPU {gpu.ordinal}" for gpu in self.gpus if gpu.uuid == uuid), "A GPU")
        return Failure(
            UNSUPPORTED,
            f"{label} tells which processes use it, but not how much memory each holds: "
            "under Windows and WSL the driver never does, and for MIG instances only to root.",
        )

    # ---- Giving out.

    def _knows_processes(self, stream: _Stream, table: _AppTable, at_seconds: float) -> bool:
        """Whether the table is news. Silence of a program that goes round means that nobody is there any more."""
        if not stream.is_running:
            return False
        is_going_round = stream.is_going_round(at_seconds, self._window_seconds)
        if at_seconds - stream.heard_seconds <= self._window_seconds:
            return True
        table.clear()
        return is_going_round and at_seconds - stream.started_seconds > self._window_seconds

    def _take_reading(self, gpu: Gpu, at_seconds: float, telling: set[str]) -> GpuReading | None:
        taken_seconds, reading = self._latest.get(gpu.uuid, (float("-inf"), None))
        utilizations = self._utilizations.pop(gpu.uuid, [])
        if gpu.uuid in self._guard.lost or reading is None:
            return None
        if at_seconds - taken_seconds > self._window_seconds:
            self._say_if_left_out(gpu)
            return None
        if utilizations:
            reading = reading._replace(
                utilization_percent=sum(utilizations) / len(utilizations),
                utilization_high_percent=max(utilizations),
            )
        return reading._replace(lists_processes=gpu.uuid in telling)

    def _say_if_left_out(self, gpu: Gpu) -> None:
        """A device that this user may no longer open disappears from the table without a word."""
        n_rounds = self._rows_of_others.get(gpu.uuid, 0) / len(self._wholes)
        if n_rounds > _ROUNDS_LEFT_OUT and all(stream.gpu is None for stream in self._streams):
            text = f"{SMI} no longer tells of GPU {gpu.ordinal}; this user may have lost access to it."
            self._guard.say(gpu.uuid, TROUBLE, text)

    def _say_what_is_missing(self) -> None:
        guard, unknown = self._guard, self._inventory.unknown
        for number, note in enumerate(self._inventory.notes):
            guard.say("", f"device {number}", note)
        for figure in FIGURES:
            if figure.field in unknown:
                guard.reasons["", figure.name] = f"This {SMI} does not tell the {figure.words} of a GPU."
        guard.reasons["", "energy_joules"] = f"{SMI} does not tell the energy that a GPU has used."
        if "memory.reserved" in unknown:
            guard.say(
                "",
                "reserved_bytes",
                "The memory in use on NVIDIA GPUs includes what the driver reserves for itself: "
                f"this {SMI} does not tell them apart.",
            )
        if self._inventory.app_complaint is not None:
            text = f"The processes on NVIDIA GPUs are not told; {SMI} said: {self._inventory.app_complaint}."
            guard.reasons["", "lists_processes"] = text
            guard.say("", "compute-apps", text)
        instances = [gpu for gpu in self.gpus if gpu.parent_uuid is not None]
        for gpu in instances:
            text = f"{SMI} does not list the figures of MIG instances, only of the whole device."
            guard.reasons[gpu.uuid, "used_bytes"] = guard.reasons[gpu.uuid, "utilization_percent"] = text
            guard.say("", "MIG", text)

"""NVIDIA, through its command nvidia-smi: for where the driver's library cannot be loaded into our process.

It is asked for two tables, side by side: the devices, and the processes that compute there. Starting it is dear, so
that is done about once a second, and less often where it takes much CPU time. In between, `read` repeats the latest
answer, as of when it was given; when there is none, nothing.

One device that cannot be opened, or at which nvidia-smi hangs, spoils the tables of all. Each device is then asked
for on its own.
"""

from __future__ import annotations

import os
from itertools import starmap

from ...core.model import Gpu, GpuProcessReading, GpuReading, GpuReadings
from ...core.values import NamedTuple
from .. import NotAvailableError
from ..command import run
from .guard import LOST, TROUBLE, UNSUPPORTED, Failure, Guard
from .nvidia import SMI, find_smi
from .smi_text import (
    APP_FIELDS,
    CELLS,
    DEVICE_FIELDS,
    FIELD,
    HANDLE,
    NO_DEVICES,
    OTHER,
    SILENCE,
    SOURCE,
    Complaint,
    Table,
    drop_field,
    explain_absence,
    explain_cell,
    parse_app,
    parse_details,
    parse_gpu,
    parse_listing,
    parse_reading,
    parse_table,
    shorten,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

NAME = SOURCE

_DEVICES, _PROCESSES = "gpu", "compute-apps"
_INTERVAL_SECONDS = 1.0
_MOST_CPU = 0.05  # of a core
_PATIENCE_SECONDS = 15.0  # without persistence mode, a driver takes seconds to wake all its devices
_GRACE_SECONDS = 5.0  # for who has not answered while others have
_TOGETHER_AGAIN_SECONDS = 60.0
_PROBED_AT_ONCE = 8


def why_absent() -> str | None:
    """A reason not to try, or None. Cheap: most machines have no such program."""
    if find_smi() is None:
        return f"No NVIDIA GPU was measured: there is no {SMI} on the PATH; it comes with NVIDIA's driver."
    if not hasattr(os, "posix_spawn"):
        return f"No NVIDIA GPU was measured: {SMI} can be asked on Linux and the like only."
    return None


def connect(now: Callable[[], float], patience_seconds: float = _PATIENCE_SECONDS) -> NvidiaSmiSource:
    """Find the devices, or say why not.

    It takes at most four times the patience, and only where devices hang.
    """
    reason = why_absent()
    path = find_smi()
    if reason is not None or path is None:
        raise NotAvailableError(reason or f"No NVIDIA GPU was measured: {SMI} has just gone.")
    try:
        return NvidiaSmiSource(_Program(path, patience_seconds), now)
    except OSError as error:
        raise NotAvailableError(
            f"No NVIDIA GPU was measured: {SMI} cannot be started ({error.strerror})."
        ) from None


# ---- Asking.


class _Question(NamedTuple):
    """A table, of one device or of all."""

    subject: str
    number: int | None = None


class _Program:
    """nvidia-smi, asked in words that this version knows."""

    def __init__(self, path: str, patience_seconds: float) -> None:
        self._path = path
        self._patience_seconds = patience_seconds
        self.fields: dict[str, tuple[str, ...]] = {_DEVICES: DEVICE_FIELDS, _PROCESSES: APP_FIELDS}

    def ask(
        self, questions: Sequence[_Question], grace_seconds: float | None = _GRACE_SECONDS
    ) -> tuple[dict[_Question, Table], float]:
        """What became of each, and what that took of CPU time."""
        commands = [self._compose(*question) for question in questions]
        answers = run(commands, self._patience_seconds, grace_seconds)
        seconds = min(self._patience_seconds, grace_seconds or self._patience_seconds)
        tables = {
            question: parse_table(answer.text, answer.status, self.fields[question.subject], seconds)
            for question, answer in zip(questions, answers, strict=True)
        }
        has_given_up = False
        for question, table in tables.items():
            has_given_up |= self._give_up_field(question.subject, table)
        if has_given_up:
            return self.ask(questions, grace_seconds)
        return tables, sum(answer.cpu_seconds for answer in answers)

    def list_all(self) -> str:
        """Also what no table tells of: instances."""
        return run([[self._path, "-L"]], self._patience_seconds)[0].text or ""

    def _compose(self, subject: str, number: int | None) -> list[str]:
        query = f"--query-{subject}={','.join(self.fields[subject])}"
        command = [self._path, query, "--format=csv,noheader,nounits"]
        return command if number is None else [*command, "-i", str(number)]

    def _give_up_field(self, subject: str, table: Table) -> bool:
        """Whether there is one fewer to ask for now, as this version does not know it."""
        if table.complaint is None or table.complaint.kind != FIELD:
            return False
        fewer = drop_field(self.fields[subject], table.complaint.subject)
        self.fields[subject] = fewer or self.fields[subject]
        return fewer is not None


_EVERYTHING = (_Question(_DEVICES), _Question(_PROCESSES))


def _spoils_all(question: _Question, table: Table) -> bool:
    """Whether it may be one device's fault that nothing is told of any."""
    if question.number is not None or table.complaint is None or table.rows:
        return False
    is_about_devices = question.subject == _DEVICES
    return table.complaint.kind == HANDLE or (table.complaint.kind == SILENCE and is_about_devices)


def _probe_each(program: _Program) -> tuple[list[dict[str, str]], list[str]]:
    """The rows of the devices that can be read, and what is to be said of the others."""
    rows: list[dict[str, str]] = []
    notes: list[str] = []
    first = 0
    while True:
        numbers = range(first, first + _PROBED_AT_ONCE)
        tables, _ = program.ask([_Question(_DEVICES, number) for number in numbers], None)
        for (_, number), table in tables.items():
            rows += table.rows
            if table.rows or table.complaint is None:
                continue
            if table.complaint.kind in {NO_DEVICES, OTHER}:
                return rows, notes  # beyond the last
            notes.append(f"GPU {number} is not measured: {_quote(table.complaint)}.")
        if all(table.complaint and table.complaint.kind == SILENCE for table in tables.values()):
            return rows, notes
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


def _quote(complaint: Complaint) -> str:
    words = shorten(complaint.words)
    return words if complaint.kind == SILENCE else f"{SMI} said: {words}"


# ---- Devices.


class _Told(NamedTuple):
    """What was told this time."""

    readings: dict[str, GpuReading]
    processes: dict[tuple[str, int], int | None]
    whose_processes: set[str]
    """The devices that have told theirs."""


class NvidiaSmiSource:
    """Every NVIDIA device that nvidia-smi tells of."""

    def __init__(self, program: _Program, now: Callable[[], float]) -> None:
        self._program = program
        self._now = now
        self._guard = Guard(now, (), lambda error, _device, _what: Failure(TROUBLE, str(error)))
        self.reasons: Mapping[tuple[str, str], str] = self._guard.reasons
        self.kinds: Mapping[tuple[str, str], str] = self._guard.kinds
        self._details: dict[str, Mapping[str, float | str]] = {}
        began_seconds = now()
        tables, cpu_seconds = program.ask(_EVERYTHING)
        rows, complaint = tables[_EVERYTHING[0]]
        is_spoilt = _spoils_all(_EVERYTHING[0], tables[_EVERYTHING[0]])
        if is_spoilt:
            rows, notes = _probe_each(program)
            for number, note in enumerate(notes):
                self._guard.say("", f"device {number}", note)
        if not rows:
            raise NotAvailableError(explain_absence(complaint or Complaint(OTHER, "", "")))
        self.gpus = tuple(parse_gpu(row) for row in rows)
        self._wholes = {gpu.uuid: gpu for gpu in self.gpus}
        if any(row.get("mig.mode.current") == "Enabled" for row in rows):
            self.gpus += _list_instances(self.gpus, program.list_all())
        self._say_what_is_missing()
        # What a device spoils that is not among ours stays so.
        self._one_by_one_until_seconds = float("inf" if is_spoilt else "-inf")
        self._due_seconds = began_seconds
        self._latest = GpuReadings(began_seconds)
        if not is_spoilt:
            self._take(tables, cpu_seconds, began_seconds)

    def read(self, pids: frozenset[int] | None) -> GpuReadings:
        """Ask, if it is time to; the latest answer."""
        at_seconds = self._now()
        if at_seconds >= self._due_seconds:
            questions = self._list_questions(at_seconds)
            try:
                tables, cpu_seconds = self._program.ask(questions)
            except OSError as error:  # the job may have used up all processes that there may be
                complaint = Complaint(OTHER, "", f"{SMI} cannot be started ({error.strerror})")
                tables, cpu_seconds = dict.fromkeys(questions, Table([], complaint)), 0.0
            self._take(tables, cpu_seconds, at_seconds)
        look = self._latest
        if pids is None:
            return look
        return look._replace(processes=tuple(process for process in look.processes if process.pid in pids))

    def read_details(self) -> Mapping[str, Mapping[str, float | str]]:
        """As of the latest answer."""
        return {uuid: details for uuid, details in self._details.items() if uuid not in self._guard.lost}

    def take_notes(self) -> tuple[str, ...]:
        """What there is to say since the last call."""
        return self._guard.take_notes()

    def close(self) -> None:
        """Nothing is kept open; nothing is asked any more."""
        self._due_seconds = float("inf")
        self._latest = GpuReadings(self._now())

    # ---- What to ask.

    def _list_questions(self, at_seconds: float) -> list[_Question]:
        questions = list(_EVERYTHING)
        if at_seconds < self._one_by_one_until_seconds:
            numbers = [gpu.ordinal for uuid, gpu in self._wholes.items() if uuid not in self._guard.lost]
            questions = [
                _Question(subject, number) for number in numbers for subject in (_DEVICES, _PROCESSES)
            ]
        return [question for question in questions if not self._guard.is_paused(*self._name(question))]

    def _name(self, question: _Question) -> tuple[str, str]:
        """The device, or nothing for all, and what it is asked for."""
        uuids = [uuid for uuid, gpu in self._wholes.items() if gpu.ordinal == question.number]
        return uuids[0] if uuids else "", "device" if question.subject == _DEVICES else "lists_processes"

    # ---- Taking in.

    def _take(self, tables: Mapping[_Question, Table], cpu_seconds: float, at_seconds: float) -> None:
        told = _Told({}, {}, set())
        is_spoilt = any(starmap(_spoils_all, tables.items()))
        for question, (rows, complaint) in tables.items():
            if complaint is None or (rows and question.subject == _DEVICES):
                self._accept(question, rows, told)
            elif not is_spoilt:
                self._refuse(question, complaint)
        self._choose_how_to_go_on(tables, at_seconds, is_spoilt=is_spoilt)
        pause_seconds = 0.0 if is_spoilt else max(_INTERVAL_SECONDS, cpu_seconds / _MOST_CPU)
        self._due_seconds = at_seconds + pause_seconds
        self._latest = GpuReadings(
            at_seconds,
            tuple(
                reading._replace(lists_processes=uuid in told.whose_processes)
                for uuid, reading in told.readings.items()
            ),
            tuple(
                GpuProcessReading(uuid, pid, used_bytes)
                for (uuid, pid), used_bytes in told.processes.items()
                if uuid not in self._guard.lost
            ),
        )

    def _choose_how_to_go_on(
        self, tables: Mapping[_Question, Table], at_seconds: float, *, is_spoilt: bool
    ) -> None:
        """One by one from now on, or until all have been fine for a while."""
        is_one_by_one = at_seconds < self._one_by_one_until_seconds
        n_fine = sum(complaint is None for _, complaint in tables.values())
        if is_spoilt or (is_one_by_one and n_fine < len(_EVERYTHING) * len(self._wholes)):
            until_seconds = at_seconds + _TOGETHER_AGAIN_SECONDS
            self._one_by_one_until_seconds = max(self._one_by_one_until_seconds, until_seconds)
        if is_spoilt:
            for question in _EVERYTHING:  # whatever was wrong with them, others answer for them now
                self._guard.succeed(*self._name(question))

    def _accept(self, question: _Question, rows: list[dict[str, str]], told: _Told) -> None:
        uuid, what = self._name(question)
        self._guard.succeed(uuid, what)
        if question.subject == _DEVICES:
            for row in rows:
                self._take_reading(row, told.readings)
            self._say_who_is_left_out(uuid, told.readings)
        else:
            told.whose_processes.update([uuid] if uuid else self._wholes)
            for row in rows:
                self._take_process(parse_app(row), told.processes)

    def _take_reading(self, row: Mapping[str, str], readings: dict[str, GpuReading]) -> None:
        gpu = self._wholes.get(parse_gpu(row).uuid)
        if gpu is None or gpu.uuid in self._guard.lost:
            return
        reading, refusals = parse_reading(row, gpu.uuid)
        refused = dict(refusals)
        for figure in (cell.figure for cell in CELLS):
            if figure in refused:
                failure = explain_cell(f"GPU {gpu.ordinal}", figure.label, refused[figure])
                self._guard.fail(gpu.uuid, figure.name, failure)
                if failure.kind == LOST:
                    return  # the other cells are not to be believed
            else:
                self._guard.succeed(gpu.uuid, figure.name)
        readings[gpu.uuid] = reading
        self._details[gpu.uuid] = parse_details(row)

    def _take_process(self, app: GpuProcessReading, processes: dict[tuple[str, int], int | None]) -> None:
        uuid = self._find_device(app.uuid)
        if uuid is None:
            return
        if app.used_bytes is None:
            self._guard.fail(uuid, "process_used_bytes", self._explain_unknown_use(uuid))
        else:
            self._guard.succeed(uuid, "process_used_bytes")
        # One that is listed twice holds the larger: each line tells all of it, as far as that line knows.
        sizes = (processes.get((uuid, app.pid)), app.used_bytes)
        processes[uuid, app.pid] = max((size for size in sizes if size is not None), default=None)

    def _find_device(self, uuid: str) -> str | None:
        """Ours for theirs: an instance that is not listed stands for its parent, if its old name tells that."""
        if any(gpu.uuid == uuid for gpu in self.gpus):
            return uuid
        parent = uuid.removeprefix("MIG-").partition("/")[0]
        return parent if parent in self._wholes else None

    # ---- Trouble.

    def _refuse(self, question: _Question, complaint: Complaint) -> None:
        uuid, what = self._name(question)
        words = shorten(complaint.words)
        gpu = self._wholes.get(uuid)
        label = f"GPU {gpu.ordinal}" if gpu else "the NVIDIA GPUs"
        if uuid in self._guard.lost:
            return
        if gpu and complaint.kind == HANDLE and "lost" in words.lower():
            self._guard.fail(uuid, "used_bytes", explain_cell(label, "state", "[GPU is lost]"))
            return
        if question.subject == _DEVICES:
            text = f"{label[0].upper()}{label[1:]} could not be read for a while: {words}."
        else:
            text = f"{SMI} does not tell which processes use {label}: {words}."
        self._guard.fail(uuid, what, Failure(UNSUPPORTED if complaint.kind == FIELD else TROUBLE, text))

    def _explain_unknown_use(self, uuid: str) -> Failure:
        label = next((f"GPU {gpu.ordinal}" for gpu in self.gpus if gpu.uuid == uuid), "A GPU")
        return Failure(
            UNSUPPORTED,
            f"{label} tells which processes use it, but not how much memory each holds: "
            "under Windows and WSL the driver never does, and for MIG instances only to root.",
        )

    def _say_who_is_left_out(self, asked_uuid: str, readings: Mapping[str, GpuReading]) -> None:
        """A device that this user may no longer open disappears from the table without a word."""
        for uuid, gpu in self._wholes.items():
            if asked_uuid in {"", uuid} and uuid not in readings and uuid not in self._guard.lost:
                text = f"{SMI} no longer tells of GPU {gpu.ordinal}; this user may have lost access to it."
                self._guard.say(uuid, TROUBLE, text)

    def _say_what_is_missing(self) -> None:
        guard = self._guard
        unknown = set(DEVICE_FIELDS).difference(self._program.fields[_DEVICES])
        for cell in CELLS:
            if cell.field in unknown:
                name, label = cell.figure.name, cell.figure.label
                guard.reasons["", name] = f"This {SMI} does not report the {label} of a GPU."
        guard.reasons["", "energy_joules"] = f"{SMI} does not tell the energy that a GPU has used."
        if "memory.reserved" in unknown:
            guard.say(
                "",
                "reserved_bytes",
                "The memory in use on NVIDIA GPUs includes what the driver reserves for itself: "
                f"this {SMI} does not tell them apart.",
            )
        instances = [gpu for gpu in self.gpus if gpu.parent_uuid is not None]
        for gpu in instances:
            text = f"{SMI} does not list the figures of MIG instances, only of the whole device."
            guard.reasons[gpu.uuid, "used_bytes"] = guard.reasons[gpu.uuid, "utilization_percent"] = text
            guard.say("", "MIG", text)

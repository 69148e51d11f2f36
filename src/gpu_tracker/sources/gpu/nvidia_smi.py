"""NVIDIA, through the command nvidia-smi, where the driver's library cannot be loaded into our process.

Two queries run in parallel: devices, and compute processes. Starting nvidia-smi is expensive, so it is run about once
a second, less often where it takes much CPU time. In between `read` returns the latest reading, if any, with its time.

If one device cannot be opened, or nvidia-smi hangs on it, the query for all devices fails. Each device is then
queried on its own.
"""

from __future__ import annotations

import os
from itertools import starmap

from ...core.model import Gpu, GpuProcessReading, GpuReading, GpuReadings, add_sizes, name_unopened
from ...core.values import NamedTuple
from .. import NotAvailableError
from ..command import run
from ..processes import exists
from .foreign_pids import HOST_PIDS, NamespaceCheck
from .guard import DENIED, LOST, TROUBLE, UNSUPPORTED, Failure, Guard
from .nvidia import SMI, find_smi
from .smi_text import (
    APP_FIELDS,
    CELLS,
    DEVICE_FIELDS,
    FIELD,
    HANDLE,
    NO_DEVICES,
    NOTHING,
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
    from collections.abc import Callable, Collection, Mapping, Sequence

NAME = SOURCE

_DEVICES, _PROCESSES = "gpu", "compute-apps"
_INTERVAL_SECONDS = 1.0
_MOST_CPU = 0.05  # of a core
_PATIENCE_SECONDS = 15.0  # without persistence mode, a driver takes seconds to wake its devices
_GRACE_SECONDS = 5.0  # for the queries that are still running when the first has ended
_TOGETHER_AGAIN_SECONDS = 60.0
_PROBED_AT_ONCE = 8
_MOST_PROBED = 64


def why_absent() -> str | None:
    """A reason not to try, or None."""
    if find_smi() is None:
        return f"No NVIDIA GPU was measured: {SMI}, which comes with NVIDIA's driver, is not on the PATH."
    if not hasattr(os, "posix_spawn"):
        return f"No NVIDIA GPU was measured: {SMI} is supported on Linux and Unix only."
    return None


def connect(now: Callable[[], float], patience_seconds: float = _PATIENCE_SECONDS) -> NvidiaSmiSource:
    """Find the devices, or raise with the reason why not.

    It takes at most four times the patience, and only if devices hang.
    """
    reason = why_absent()
    path = find_smi()
    if reason is not None or path is None:
        raise NotAvailableError(reason or f"No NVIDIA GPU was measured: {SMI} was just removed.")
    try:
        return NvidiaSmiSource(_Program(path, patience_seconds), now)
    except OSError as error:
        raise NotAvailableError(
            f"No NVIDIA GPU was measured: {SMI} cannot be started ({error.strerror})."
        ) from None


# ---- Queries.


class _Query(NamedTuple):
    """A table of one device, or of all."""

    subject: str
    number: int | None = None


class _Program:
    """nvidia-smi, queried for the fields that this version supports."""

    def __init__(self, path: str, patience_seconds: float) -> None:
        self._path = path
        self._patience_seconds = patience_seconds
        self.fields: dict[str, tuple[str, ...]] = {_DEVICES: DEVICE_FIELDS, _PROCESSES: APP_FIELDS}

    def run(
        self, queries: Sequence[_Query], grace_seconds: float | None = _GRACE_SECONDS
    ) -> tuple[dict[_Query, Table], float]:
        """The tables, and the CPU time spent."""
        commands = [self._compose(*query) for query in queries]
        answers = run(commands, self._patience_seconds, grace_seconds)
        seconds = min(self._patience_seconds, grace_seconds or self._patience_seconds)
        tables = {
            query: parse_table(answer.text, answer.status, self.fields[query.subject], seconds, answer.errors)
            for query, answer in zip(queries, answers, strict=True)
        }
        has_dropped = False
        for query, table in tables.items():
            has_dropped |= self._drop_field(query.subject, table)
        if has_dropped:
            return self.run(queries, grace_seconds)
        return tables, sum(answer.cpu_seconds for answer in answers)

    def list_all(self) -> str:
        """Devices and MIG instances, which are in no table."""
        return run([[self._path, "-L"]], self._patience_seconds)[0].text or ""

    def _compose(self, subject: str, number: int | None) -> list[str]:
        query = f"--query-{subject}={','.join(self.fields[subject])}"
        command = [self._path, query, "--format=csv,noheader,nounits"]
        return command if number is None else [*command, "-i", str(number)]

    def _drop_field(self, subject: str, table: Table) -> bool:
        """Drop a field that this version does not support; whether there was one."""
        if table.complaint is None or table.complaint.kind != FIELD:
            return False
        fewer = drop_field(self.fields[subject], table.complaint.subject)
        self.fields[subject] = fewer or self.fields[subject]
        return fewer is not None


_EVERYTHING = (_Query(_DEVICES), _Query(_PROCESSES))


def _has_failed_for_all(query: _Query, table: Table) -> bool:
    """Whether one device may have made the query for all devices fail, perhaps after the rows of those before it."""
    if query.number is not None or table.complaint is None:
        return False
    is_about_devices = query.subject == _DEVICES
    is_broken_off = table.complaint.kind in {SILENCE, NOTHING} or bool(table.rows)
    return table.complaint.kind == HANDLE or (is_about_devices and is_broken_off)


def _probe_each(program: _Program) -> tuple[list[dict[str, str]], dict[int, Complaint]]:
    """The rows of the devices that can be read, and what is said about the others, by number."""
    rows: list[dict[str, str]] = []
    complaints: dict[int, Complaint] = {}
    for first in range(0, _MOST_PROBED, _PROBED_AT_ONCE):
        numbers = range(first, first + _PROBED_AT_ONCE)
        tables, _ = program.run([_Query(_DEVICES, number) for number in numbers], None)
        for (_, number), table in tables.items():
            rows += table.rows
            if table.rows or table.complaint is None:
                continue
            if table.complaint.kind in {NO_DEVICES, OTHER}:
                return rows, complaints  # there is no device with this number
            if number is not None and table.complaint.kind != NOTHING:
                complaints[number] = table.complaint
        if all(table.complaint and table.complaint.kind in {SILENCE, NOTHING} for table in tables.values()):
            break
    return rows, complaints


def _explain_unopened(number: int, complaint: Complaint) -> Failure:
    words = complaint.words.lower()
    kind = LOST if "lost" in words else DENIED if "permission" in words else TROUBLE
    return Failure(kind, f"GPU {number} is not measured: {_quote(complaint)}.")


def _list_instances(gpus: tuple[Gpu, ...], listing: str) -> tuple[Gpu, ...]:
    parents = {gpu.uuid: gpu for gpu in gpus}
    return tuple(
        parents[listed.parent_uuid]._replace(
            instance=listed.ordinal,
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
    return words if complaint.kind in {SILENCE, NOTHING} else f"{SMI} said: {words}"


# ---- Devices.


class _Results(NamedTuple):
    """The results of one round of queries."""

    readings: dict[str, GpuReading]
    processes: dict[tuple[str, int], int | None]
    with_processes: set[str]
    """The devices whose processes were listed."""


class NvidiaSmiSource:
    """Every NVIDIA device that nvidia-smi lists."""

    poll_seconds = float("inf")
    is_outdated = False

    def __init__(self, program: _Program, now: Callable[[], float]) -> None:
        self._program = program
        self._now = now
        self._guard = Guard(now, (), lambda error, _device, _what: Failure(TROUBLE, str(error)))
        self.reasons: Mapping[tuple[str, str], str] = self._guard.reasons
        self.kinds: Mapping[tuple[str, str], str] = self._guard.kinds
        self._namespace = NamespaceCheck()
        self._checked_seconds = float("-inf")
        self._details: dict[str, Mapping[str, float | str]] = {}
        self.unopened: tuple[Gpu, ...] = ()
        began_seconds = now()
        tables, cpu_seconds = program.run(_EVERYTHING)
        rows, complaint = tables[_EVERYTHING[0]]
        has_failed = _has_failed_for_all(_EVERYTHING[0], tables[_EVERYTHING[0]])
        if has_failed:
            rows, complaints = _probe_each(program)
            for number, one in complaints.items():
                self._note_unopened(number, one)
        if not rows:
            raise NotAvailableError(explain_absence(complaint or Complaint(OTHER, "", "")))
        self.gpus = tuple(parse_gpu(row) for row in rows)
        self._wholes = {gpu.uuid: gpu for gpu in self.gpus}
        if any(row.get("mig.mode.current") == "Enabled" for row in rows):
            self.gpus += _list_instances(self.gpus, program.list_all())
        self._note_missing_figures()
        # A device that could not be opened will keep failing the query for all.
        self._one_by_one_until_seconds = float("inf" if has_failed else "-inf")
        self._due_seconds = began_seconds
        self._latest = GpuReadings(began_seconds)
        if not has_failed:
            self._take(tables, cpu_seconds, began_seconds)

    def read(self, pids: frozenset[int] | None) -> GpuReadings:
        """The latest reading, renewed if it is due."""
        at_seconds = self._now()
        if at_seconds >= self._due_seconds:
            queries = self._list_queries(at_seconds)
            try:
                tables, cpu_seconds = self._program.run(queries)
            except OSError as error:  # the job may have reached the limit of processes
                complaint = Complaint(OTHER, "", f"{SMI} cannot be started ({error.strerror})")
                tables, cpu_seconds = dict.fromkeys(queries, Table([], complaint)), 0.0
            self._take(tables, cpu_seconds, at_seconds)
        latest = self._latest
        if latest.at_seconds > self._checked_seconds:
            self._checked_seconds = latest.at_seconds
            listed = {process.pid for process in latest.processes}
            self._namespace.take(listed, pids, at_seconds, lambda pid: pids is not None and pid in pids)
        if pids is None:
            return latest
        if self._namespace.shows_foreign_pids:
            for device in latest.devices:
                self._guard.kinds[device.uuid, "lists_processes"] = DENIED
                self._guard.reasons[device.uuid, "lists_processes"] = HOST_PIDS
        if self._namespace.shows_foreign_pids or self._namespace.has_strangers:
            devices = (device._replace(lists_processes=False) for device in latest.devices)
            return latest._replace(devices=tuple(devices), processes=())
        return latest._replace(
            processes=tuple(process for process in latest.processes if process.pid in pids)
        )

    def collect(self) -> None:
        """There are no samples of processes here."""

    def expect_end(self) -> None:
        """Everything is read each time."""

    def read_details(self, names: Collection[str]) -> Mapping[str, Mapping[str, float | str]]:
        """As of the latest reading."""
        return {
            uuid: {name: value for name, value in details.items() if name in names}
            for uuid, details in self._details.items()
            if uuid not in self._guard.lost
        }

    def take_notes(self) -> tuple[str, ...]:
        """Sentences for the user since the last call."""
        return self._guard.take_notes()

    def close(self) -> None:
        """Run no more queries; nothing is kept open."""
        self._due_seconds = float("inf")
        self._latest = GpuReadings(self._now())

    # ---- What to query.

    def _list_queries(self, at_seconds: float) -> list[_Query]:
        queries = list(_EVERYTHING)
        if at_seconds < self._one_by_one_until_seconds:
            numbers = [gpu.ordinal for uuid, gpu in self._wholes.items() if uuid not in self._guard.lost]
            queries = [_Query(subject, number) for number in numbers for subject in (_DEVICES, _PROCESSES)]
        return [query for query in queries if not self._guard.is_paused(*self._name(query))]

    def _name(self, query: _Query) -> tuple[str, str]:
        """The device (empty for all) and the figure of a query."""
        uuids = [uuid for uuid, gpu in self._wholes.items() if gpu.ordinal == query.number]
        return uuids[0] if uuids else "", "device" if query.subject == _DEVICES else "lists_processes"

    # ---- Results.

    def _take(self, tables: Mapping[_Query, Table], cpu_seconds: float, at_seconds: float) -> None:
        results = _Results({}, {}, set())
        has_failed = any(starmap(_has_failed_for_all, tables.items()))
        for query, (rows, complaint) in tables.items():
            if complaint is None or (rows and query.subject == _DEVICES and not has_failed):
                self._accept(query, rows, results)
            elif not has_failed:
                self._refuse(query, complaint)
        self._choose_queries(tables, at_seconds, has_failed=has_failed)
        pause_seconds = 0.0 if has_failed else max(_INTERVAL_SECONDS, cpu_seconds / _MOST_CPU)
        self._due_seconds = at_seconds + pause_seconds
        self._latest = GpuReadings(
            at_seconds,
            tuple(
                reading._replace(
                    lists_processes=uuid in results.with_processes,
                    has_lost_list=uuid not in results.with_processes,
                    listed_bytes=add_sizes(
                        size for (its_uuid, _), size in results.processes.items() if its_uuid == uuid
                    ),
                )
                for uuid, reading in results.readings.items()
            ),
            tuple(
                GpuProcessReading(uuid, pid, used_bytes)
                for (uuid, pid), used_bytes in results.processes.items()
                if uuid not in self._guard.lost
            ),
        )

    def _choose_queries(self, tables: Mapping[_Query, Table], at_seconds: float, *, has_failed: bool) -> None:
        """After a failure, query devices one by one until all have been fine for a while."""
        is_one_by_one = at_seconds < self._one_by_one_until_seconds
        n_fine = sum(complaint is None for _, complaint in tables.values())
        if has_failed or (is_one_by_one and n_fine < len(_EVERYTHING) * len(self._wholes)):
            until_seconds = at_seconds + _TOGETHER_AGAIN_SECONDS
            self._one_by_one_until_seconds = max(self._one_by_one_until_seconds, until_seconds)
        if has_failed:
            for query in _EVERYTHING:  # replaced by queries of single devices
                self._guard.succeed(*self._name(query))

    def _accept(self, query: _Query, rows: list[dict[str, str]], results: _Results) -> None:
        uuid, what = self._name(query)
        self._guard.succeed(uuid, what)
        if query.subject == _DEVICES:
            for row in rows:
                self._take_reading(row, results.readings)
            self._note_missing_devices(uuid, results.readings)
        else:
            results.with_processes.update([uuid] if uuid else self._wholes)
            for row in rows:
                self._take_process(parse_app(row), results.processes)

    def _take_reading(self, row: Mapping[str, str], readings: dict[str, GpuReading]) -> None:
        gpu = self._wholes.get(parse_gpu(row).uuid)
        if gpu is None or gpu.uuid in self._guard.lost:
            return
        reading, refusals = parse_reading(row, gpu.uuid)
        refused = dict(refusals)
        for figure in (cell.figure for cell in CELLS):
            if figure in refused:
                failure = explain_cell(f"GPU {gpu.place}", figure.label, refused[figure])
                self._guard.fail(gpu.uuid, figure.name, failure)
                if failure.kind == LOST:
                    return  # the other cells cannot be trusted
            else:
                self._guard.succeed(gpu.uuid, figure.name)
        readings[gpu.uuid] = reading
        self._details[gpu.uuid] = parse_details(row)

    def _take_process(self, app: GpuProcessReading, processes: dict[tuple[str, int], int | None]) -> None:
        uuid = self._find_device(app.uuid)
        if uuid is None:
            return
        if app.used_bytes is None and exists(app.pid):
            self._guard.fail(uuid, "process_used_bytes", self._explain_unknown_use(uuid))
        else:
            self._guard.succeed(uuid, "process_used_bytes")
        # A process may be listed twice, each time with its total: the larger counts.
        sizes = (processes.get((uuid, app.pid)), app.used_bytes)
        processes[uuid, app.pid] = max((size for size in sizes if size is not None), default=None)

    def _find_device(self, uuid: str) -> str | None:
        """The device of a row: for an unlisted instance its parent, if its old-style name contains that."""
        if any(gpu.uuid == uuid for gpu in self.gpus):
            return uuid
        parent = uuid.removeprefix("MIG-").partition("/")[0]
        return parent if parent in self._wholes else None

    # ---- Trouble.

    def _note_unopened(self, number: int, complaint: Complaint) -> None:
        label, failure = name_unopened(number), _explain_unopened(number, complaint)
        self._guard.fail(label, "device", failure)
        if failure.kind != DENIED:
            self.unopened += (Gpu(number, label, "", None, "nvidia", NAME),)

    def _refuse(self, query: _Query, complaint: Complaint) -> None:
        uuid, what = self._name(query)
        words = shorten(complaint.words)
        gpu = self._wholes.get(uuid)
        label = f"GPU {gpu.place}" if gpu else "the NVIDIA GPUs"
        if uuid in self._guard.lost:
            return
        if gpu and complaint.kind == HANDLE and "lost" in words.lower():
            self._guard.fail(uuid, "used_bytes", explain_cell(label, "state", "[GPU is lost]"))
            return
        if query.subject == _DEVICES:
            text = f"{label[0].upper()}{label[1:]} could not be read for a while: {words}."
        else:
            text = f"{SMI} does not list the processes on {label}: {words}."
        self._guard.fail(uuid, what, Failure(UNSUPPORTED if complaint.kind == FIELD else TROUBLE, text))

    def _explain_unknown_use(self, uuid: str) -> Failure:
        label = next((f"GPU {gpu.place}" for gpu in self.gpus if gpu.uuid == uuid), "A GPU")
        return Failure(
            UNSUPPORTED,
            f"{label} lists its processes without their memory: under Windows and WSL the driver never reports it, "
            "and for MIG instances only to root.",
        )

    def _note_missing_devices(self, asked_uuid: str, readings: Mapping[str, GpuReading]) -> None:
        """A device that this user may no longer open silently disappears from the table."""
        for uuid, gpu in self._wholes.items():
            if asked_uuid in {"", uuid} and uuid not in readings and uuid not in self._guard.lost:
                text = f"{SMI} no longer lists GPU {gpu.place}; this user may have lost access to it."
                self._guard.say(uuid, TROUBLE, text)

    def _note_missing_figures(self) -> None:
        guard = self._guard
        unknown = set(DEVICE_FIELDS).difference(self._program.fields[_DEVICES])
        for cell in CELLS:
            if cell.field in unknown:
                name, label = cell.figure.name, cell.figure.label
                self._note_unsupported("", name, f"This {SMI} does not report the {label} of a GPU.")
        self._note_unsupported(
            "", "energy_joules", f"{SMI} does not report energy; the driver's library does."
        )
        self._note_unsupported(
            "",
            "utilization_of_processes",
            f"{SMI} does not report utilization by process; the driver's library does.",
        )
        if "memory.reserved" in unknown:
            guard.say(
                "",
                "reserved_bytes",
                f"Memory in use includes the NVIDIA driver's own reserve, which this {SMI} does not report.",
            )
        instances = [gpu for gpu in self.gpus if gpu.parent_uuid is not None]
        for gpu in instances:
            text = f"{SMI} does not report figures of MIG instances, only of the whole device."
            self._note_unsupported(gpu.uuid, "used_bytes", text)
            self._note_unsupported(gpu.uuid, "utilization_percent", text)
            guard.say("", "MIG", text)

    def _note_unsupported(self, uuid: str, figure: str, text: str) -> None:
        self._guard.reasons[uuid, figure], self._guard.kinds[uuid, figure] = text, UNSUPPORTED

"""What the integrations of Ray and Dask share: where recordings are put, how they come from other machines, and the result."""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import suppress
from threading import Event, Thread
from weakref import finalize

from ..api.recordings import combine
from ..core.config import RECORD_VARIABLE
from ..core.notices import warn_once
from ..core.values import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from typing_extensions import Self

    from ..analysis.job import Combined

_PREFIX = "gpu-tracker-"
_SECONDS = 1.0
_MOST_BYTES = 1 << 22


class Place(NamedTuple):
    """The directory of a job's recordings, and a file in it, by which another machine finds out whether it has the same one."""

    directory: str
    token: str

    def choose(self) -> tuple[str, bool]:
        """The directory to record to on this machine, and whether the job has it too."""
        if os.path.exists(os.path.join(self.directory, self.token)):
            return self.directory, True
        return tempfile.mkdtemp(prefix=_PREFIX), False


class _Origin:
    """A recording on another machine, and what of it is here."""

    def __init__(self, copy: str, read: Callable[[int], bytes]) -> None:
        self.copy = copy
        self.n_bytes = 0
        self._read = read

    def bring(self) -> None:
        """Append what is new."""
        with open(self.copy, "ab") as file:
            while part := self._read(self.n_bytes):
                file.write(part)
                self.n_bytes += len(part)


class Job:
    """Work on many machines, with one recording of each of its nodes or workers; in the end, of all of them."""

    def __init__(self, record: str | os.PathLike[str] | None) -> None:
        place = os.environ.get(RECORD_VARIABLE) or None if record is None else record
        if place is None:
            place = tempfile.mkdtemp(prefix=_PREFIX)
            finalize(self, remove, place)
        directory = os.path.abspath(place)
        os.makedirs(directory, exist_ok=True)
        descriptor, token = tempfile.mkstemp(prefix=f".{_PREFIX}", dir=directory)
        os.close(descriptor)
        self.place = Place(directory, os.path.basename(token))
        self._drop_token = finalize(self, _unlink, token)
        self._files: dict[tuple[str, str], str] = {}
        self._origins: dict[tuple[str, str], _Origin] = {}
        self._is_over = Event()
        self._thread = Thread(target=self._run, name="gpu_tracker", daemon=True)

    def __enter__(self) -> Self:
        self._begin()
        self._thread.start()
        return self

    def __exit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._is_over.set()
        self._thread.join()
        try:
            self._end()
        except Exception as error:  # noqa: BLE001 - of the engine: what it computed is worth more than our last seconds
            warn_once(f"Tracking could not be ended everywhere: {type(error).__name__}: {error}.")
        finally:
            self._drop_token()

    @property
    def recordings(self) -> tuple[str, ...]:
        """The files, all on this machine."""
        return tuple(self._files.values())

    @property
    def combined(self) -> Combined:
        """All of them as one job."""
        return combine(*self.recordings)

    def __str__(self) -> str:
        from ..reports.contract import render

        return str(render(self.combined, "text"))

    def _begin(self) -> None:
        """Start tracking everywhere."""
        raise NotImplementedError

    def _look(self) -> None:
        """Find what is new."""
        raise NotImplementedError

    def _end(self) -> None:
        """Stop tracking, and bring the rest."""
        raise NotImplementedError

    def _add(self, host: str, path: str, read: Callable[[int], bytes] | None) -> None:
        """A recording, which `read` brings from another machine."""
        if (host, path) in self._files:
            return
        copy = path
        if read is not None:
            copy = _create(self.place.directory, f"{host}-{os.path.basename(path)}")
            self._origins[host, path] = _Origin(copy, read)
        self._files[host, path] = copy

    def _bring(self) -> None:
        """What was recorded on other machines since the last time. One that is gone has no more."""
        for (host, path), origin in self._origins.items():
            try:
                origin.bring()
            except Exception as error:  # noqa: BLE001 - of the engine: its node, worker or connection is lost
                if self._is_over.is_set():
                    warn_once(
                        f"{origin.copy} may be without its end: {path} on {host} cannot be read any more "
                        f"({type(error).__name__})."
                    )

    def _run(self) -> None:
        while not self._is_over.wait(_SECONDS):
            try:
                self._look()
            except Exception as error:  # noqa: BLE001 - of the engine; the next time it may work
                warn_once(f"New nodes and workers cannot be found: {type(error).__name__}: {error}.")
            self._bring()


def read_part(path: str, offset: int) -> bytes:
    """What a recording has from there on, as much as can be sent at once."""
    with open(path, "rb") as file:
        file.seek(offset)
        return file.read(_MOST_BYTES)


def remove(directory: str) -> None:
    """Remove what was put there for want of a better place."""
    shutil.rmtree(directory, ignore_errors=True)


def _create(directory: str, name: str) -> str:
    """A new file: two machines may use the same name."""
    stem, _, suffix = name.rpartition(".")
    number = 1
    while True:
        path = os.path.join(directory, f"{stem}-{number}.{suffix}" if number > 1 else name)
        try:
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        except FileExistsError:
            number += 1
        else:
            return path


def _unlink(path: str) -> None:
    with suppress(OSError):  # somebody has removed the directory
        os.unlink(path)

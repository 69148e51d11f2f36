"""A process in our group that can tell whether a signal was for the whole group, and so has reached the job already.

A signal says who sent it, not to whom. The witness blocks every signal and answers which ones are waiting for it. The
kernel signals the youngest member of a group first, so it has every signal that we have got with the job.
"""

from __future__ import annotations

import os
import select

from ..core import signal
from ..sampler.handle.descriptor import Descriptor, make_pipe
from ..sampler.handle.process import write_quietly
from ..sources import WITNESS_NAME
from ..sources.platform import take_name
from .pending import keep_pending

_ANSWER_MILLISECONDS = 1000
_QUESTION = b"?"
_MOST_AT_ONCE = 4000
# From here on each counts, however many wait: the kernel merges only the others. macOS has none.
FIRST_QUEUED = getattr(signal, "SIGRTMIN", signal.NSIG)


class Witness:
    """Lives until it is closed, or until this process has ended."""

    def __init__(self) -> None:
        self._seen: dict[int, int] = {}
        self._pipes: list[Descriptor] = []
        self._starter_pid = 0
        self.is_lost = False
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        try:
            self._pipes += make_pipe()
            self._pipes += make_pipe()
            self._starter_pid = self._start()
        except OSError:
            self.is_lost = True  # the user may have no more processes or descriptors
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        for theirs in self._pipes[::3]:
            theirs.close()
        if self.is_lost:
            self.close()

    def reap_starter(self) -> None:
        """Wait until it is an orphan: the job's parent has one child, and waits for no other."""
        starter_pid, self._starter_pid = self._starter_pid, 0
        if not starter_pid:
            return
        try:
            os.waitpid(starter_pid, 0)
        except ChildProcessError:
            pass  # our parent ignores its children, and so do we

    def saw(self, number: int) -> bool:
        """Whether it has got this signal since it last said so."""
        if number not in self._seen and not self.is_lost:
            self._ask()
        seen = self._seen.pop(number, 0)
        if seen > 1:
            self._seen[number] = seen - 1
        return seen > 0

    def dismiss(self) -> None:
        """It may end."""
        if not self.is_lost:
            self._pipes[1].close()

    def close(self) -> None:
        """End it, and wait until it has ended."""
        self.dismiss()
        if not self.is_lost:
            self._read()
        self.is_lost = True
        for pipe in self._pipes:
            pipe.close()

    def _start(self) -> int:
        starter = os.fork()
        if starter:
            return starter
        try:
            keep_pending(signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP})
            take_name(WITNESS_NAME)
            if not os.fork():
                theirs_in, ours_out, ours_in, theirs_out = self._pipes
                ours_out.close()
                ours_in.close()
                _testify(theirs_in.number, theirs_out.number)
        finally:
            os._exit(0)

    def _ask(self) -> None:
        self.is_lost = not write_quietly(self._pipes[1].number, _QUESTION)
        if self.is_lost:
            return
        answer = self._read()
        self.is_lost = not answer
        for number in answer[1:]:
            self._seen[number] = self._seen.get(number, 0) + 1 if number >= FIRST_QUEUED else 1

    def _read(self) -> bytes:
        """An answer is short: it comes whole, or not at all."""
        poll = select.poll()
        answers = self._pipes[2].number
        poll.register(answers, select.POLLIN)
        return os.read(answers, _MOST_AT_ONCE + 1) if poll.poll(_ANSWER_MILLISECONDS) else b""


def _testify(questions: int, answers: int) -> None:
    # A stream kept open here would not end for its reader.
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(nowhere, stream)
    while os.read(questions, 1):
        os.write(answers, _QUESTION + bytes(_take_pending()))


def _take_pending() -> list[int]:
    numbers: list[int] = []
    while (pending := signal.sigpending()) and len(numbers) < _MOST_AT_ONCE - len(pending):
        numbers += [signal.sigwait({number}) for number in pending]
    return numbers

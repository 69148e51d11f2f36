"""A process in our group that can tell whether a signal was for the whole group, and so has reached the job already.

A signal says who sent it, not to whom. The witness blocks every signal and answers which ones are waiting for it. The
kernel signals the youngest member of a group first, so it has every signal that we have got with the job.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal

from ..sampler.handle.descriptor import make_pipe
from ..sources import WITNESS_NAME

_ANSWER_MILLISECONDS = 1000
_QUESTION = b"?"


class Witness:
    """Lives until it is closed, or until this process has ended."""

    def __init__(self) -> None:
        self._seen: set[int] = set()
        theirs_in, self._questions = make_pipe()
        self._answers, theirs_out = make_pipe()
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        try:
            self._start(theirs_in.number, theirs_out.number)
            self.is_lost = False
        except OSError:
            self.is_lost = True  # the user may have no more processes
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        theirs_in.close()
        theirs_out.close()

    def saw(self, number: int) -> bool:
        """Whether it has got this signal since it last said so."""
        if number not in self._seen and not self.is_lost:
            self._ask()
        if number not in self._seen:
            return False
        self._seen.remove(number)
        return True

    def close(self) -> None:
        """End it, and wait until it has ended."""
        self._questions.close()
        if not self.is_lost:
            self._read()
        self.is_lost = True
        self._answers.close()

    def _start(self, questions: int, answers: int) -> None:
        """As an orphan: the job's parent has one child, and waits for no other."""
        starter = os.fork()
        if starter:
            with contextlib.suppress(ChildProcessError):  # our parent ignores its children, and so do we
                os.waitpid(starter, 0)
            return
        try:
            _take_name()
            if not os.fork():
                self._questions.close()
                self._answers.close()
                _testify(questions, answers)
        finally:
            os._exit(0)

    def _ask(self) -> None:
        try:
            os.write(self._questions.number, _QUESTION)
        except OSError:
            self.is_lost = True
            return
        answer = self._read()
        self.is_lost = not answer
        self._seen.update(answer[1:])

    def _read(self) -> bytes:
        """An answer is short: it comes whole, or not at all."""
        poll = select.poll()
        poll.register(self._answers.number, select.POLLIN)
        return os.read(self._answers.number, 256) if poll.poll(_ANSWER_MILLISECONDS) else b""


def _testify(questions: int, answers: int) -> None:
    # A stream kept open here would not end for its reader.
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(nowhere, stream)
    while os.read(questions, 1):
        os.write(answers, _QUESTION + bytes(_take_pending()))


def _take_pending() -> set[int]:
    numbers: set[int] = set()
    while pending := signal.sigpending():
        for number in pending:
            signal.sigwait({number})
        numbers |= pending
    return numbers


def _take_name() -> None:
    try:
        with open("/proc/self/comm", "w", encoding="ascii") as file:
            file.write(WITNESS_NAME)
    except OSError:
        pass  # there is no such file on this system

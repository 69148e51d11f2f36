"""What every measure gets: the tools, the number of rounds, and how to handle a tool that fails."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

from benchmarks.jobs import RunFailedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from benchmarks.venvs import Installed

_Parameters = ParamSpec("_Parameters")
_Subject = TypeVar("_Subject", bound="Installed | None")
_Result = TypeVar("_Result")


@dataclass(frozen=True)
class Rounds:
    """How often to measure our own tool and the others."""

    ours: int
    peers: int


@dataclass(frozen=True)
class Bench:
    """One benchmark. Our own tool is the first; if it fails, the benchmark fails. Another tool that fails is left out."""

    tools: tuple[Installed, ...]
    is_quick: bool
    cache: str
    """Where tools are installed."""
    began: float = field(default_factory=time.monotonic)
    failures: list[str] = field(default_factory=list)

    @property
    def ours(self) -> Installed:
        return self.tools[0]

    def rounds(self, what: str, full: Rounds, quick: Rounds) -> Iterator[list[Installed]]:
        """The tools of each round; the order rotates."""
        planned = quick if self.is_quick else full
        for number in range(max(planned.ours, planned.peers)):
            self.say(f"{what}: round {number + 1}")
            first = number % len(self.tools)
            turn = self.tools[first:] + self.tools[:first]
            yield [tool for tool in turn if number < (planned.ours if tool is self.ours else planned.peers)]

    def attempt(
        self,
        action: Callable[Concatenate[_Subject, _Parameters], _Result],
        tool: _Subject,
        *arguments: _Parameters.args,
        **options: _Parameters.kwargs,
    ) -> _Result | None:
        """The result of the action for a tool (None is the bare job), or None if another tool failed."""
        try:
            return action(tool, *arguments, **options)
        except RunFailedError as error:
            if tool is None or tool is self.ours:
                raise
            failure = f"{tool.name}: {error}"
            if failure not in self.failures:
                self.failures.append(failure)
                self.say(failure)
            return None

    def say(self, text: str) -> None:
        """Progress, on standard error."""
        print(f"[{time.monotonic() - self.began:5.0f} s] {text}", file=sys.stderr, flush=True)

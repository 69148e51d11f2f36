"""Each figure is queried on its own, and its failure is reported once."""

from __future__ import annotations

from itertools import pairwise

from gpu_tracker.sources.gpu.guard import DENIED, LOST, TROUBLE, UNSUPPORTED, Failure, Guard


class Driver:
    """Fails on demand, and counts its calls."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.failure: Failure | None = None
        self.calls = 0
        self.call_seconds = 0.0
        self.guard = Guard(lambda: self.seconds, OSError, self.explain)

    def explain(self, _error: Exception, _device: str, _what: str) -> Failure:
        """Why it failed."""
        assert self.failure is not None
        return self.failure

    def answer(self, value: int) -> int:
        """The value, or an error."""
        self.calls += 1
        self.seconds += self.call_seconds
        if self.failure is not None:
            raise OSError
        return value

    def ask(self, what: str = "memory") -> object:
        """Ask through the guard."""
        return self.guard.ask("GPU-0", what, self.answer, 7)


def test_an_answer_passes_through() -> None:
    """With its arguments."""
    driver = Driver()

    assert driver.ask() == 7
    assert (driver.guard.reasons, driver.guard.take_notes()) == ({}, ())


def test_unsupported_and_denied_figures_are_never_queried_again() -> None:
    """And noted once."""
    for kind in (UNSUPPORTED, DENIED):
        driver = Driver()
        driver.failure = Failure(kind, "It does not report.")
        answers = [driver.ask() for _ in range(3)]
        driver.seconds = 1e9
        answers.append(driver.ask())

        assert answers == [None] * 4
        assert driver.calls == 1
        assert driver.guard.reasons == {("GPU-0", "memory"): "It does not report."}
        assert driver.guard.take_notes() == ("It does not report.",)
        assert driver.guard.take_notes() == ()


def test_what_has_worked_is_supported() -> None:
    """Even if the driver says otherwise for a while: it is asked again."""
    driver = Driver()
    driver.ask()
    driver.failure = Failure(UNSUPPORTED, "GPU 0 does not report memory.", "GPU 0", "memory")
    during = driver.ask()
    driver.failure, driver.seconds = None, 2.0

    assert (during, driver.ask()) == (None, 7)
    assert driver.guard.take_notes() == ("GPU 0 did not report memory for a while.",)


def test_trouble_is_retried_at_growing_intervals() -> None:
    """At once, and later after a tenth of the time for which it has failed, up to one minute."""
    driver = Driver()
    driver.failure = Failure(TROUBLE, "It is confused.")
    asked_at = []
    for tick in range(10_000):
        driver.seconds = tick / 10
        before = driver.calls
        driver.ask()
        if driver.calls > before:
            asked_at.append(tick)
    driver.failure = None
    driver.seconds = 2000.0

    pauses = [(before, after - before) for before, after in pairwise(asked_at)]
    assert all(pause <= 2 for before, pause in pauses if before < 10)
    assert all(pause <= max(2, before / 10 + 1) for before, pause in pauses)
    assert {pause for before, pause in pauses if before > 6000} == {600}
    assert len(pauses) < 80
    assert driver.ask() == 7
    assert driver.guard.reasons == {}
    assert driver.guard.take_notes() == ("It is confused.",)


def test_a_call_that_takes_long_to_fail_is_retried_less_often() -> None:
    """Meanwhile nothing else is read; but what took long once need not do so again."""
    driver = Driver()
    driver.failure, driver.call_seconds = Failure(TROUBLE, "It timed out."), 0.5
    called_at = []
    for second in (0.0, 0.55, 0.65, 11.1, 11.2):
        driver.seconds, before = second, driver.calls
        driver.ask()
        called_at += [second] * (driver.calls - before)

    assert called_at == [0.0, 0.65, 11.2]


def test_other_figures_go_on() -> None:
    """One failure affects no other figure."""
    driver = Driver()
    driver.failure = Failure(UNSUPPORTED, "No.")
    driver.ask()
    driver.failure = None

    assert driver.ask("power") == 7


def test_a_lost_device_is_known() -> None:
    """So that its other figures are not queried."""
    driver = Driver()
    driver.failure = Failure(LOST, "It was lost.")
    driver.ask()
    driver.ask("power")

    assert driver.guard.lost == {"GPU-0"}
    assert driver.guard.take_notes() == ("It was lost.",)


def test_several_unsupported_figures_are_one_sentence() -> None:
    """Instead of one each."""
    driver = Driver()
    for figure in ("power", "energy", "clocks"):
        driver.failure = Failure(UNSUPPORTED, f"GPU 0 does not report {figure}.", "GPU 0", figure)
        driver.ask(figure)

    assert driver.guard.take_notes() == ("GPU 0 does not report power, energy and clocks.",)

"""All rules, in the order in which they are explained. To add one, write its function and its row in a module of its subject. Pure."""

from __future__ import annotations

from math import inf

from ...core.errors import UsageError
from . import cpu, ending, gpu, gpu_memory, memory, metrics, timing
from .judge import Changes
from .rule import COMMON

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from .rule import Rule

# How names of thresholds end → the largest value, and what to use.
_BOUNDS = {"share": (1.0, "Use a share from 0 to 1."), "percent": (100.0, "Use a percentage from 0 to 100.")}
_SUBJECTS = (gpu, gpu_memory, memory, cpu, timing, metrics, ending)


def _find_order(rule: Rule) -> tuple[int, str]:
    """15b comes after 15."""
    return int(rule.number.rstrip("b")), rule.number


RULES: tuple[Rule, ...] = tuple(
    sorted((rule for subject in _SUBJECTS for rule in subject.RULES), key=_find_order)
)


def find_rule(name: str) -> Rule:
    """The rule of that name, or a UsageError that names a similar one."""
    for rule in RULES:
        if rule.name == name:
            return rule
    raise UsageError(f"No rule is called {name!r}.", _suggest(name, (rule.name for rule in RULES)))


def parse_changes(sections: Mapping[str, Mapping[str, str]]) -> Changes:
    """Changes of thresholds, as they are in a file: rule → name → value; `off` switches a rule off."""
    thresholds, off = {}, set()
    for section, values in sections.items():
        changed = dict(values)
        if section != "all" and _is_true(section, changed.pop("off", "false")):
            off.add(section)
        known = COMMON if section == "all" else find_rule(section).thresholds
        names = [threshold.name for threshold in known]
        for name in changed:
            if name not in names:
                raise UsageError(f"Rule {section!r} has no threshold {name!r}.", _suggest(name, names))
        thresholds[section] = {name: _parse_number(section, name, text) for name, text in changed.items()}
    return Changes(thresholds, frozenset(off))


def _is_true(section: str, text: str) -> bool:
    if text not in ("true", "false"):
        raise UsageError(f"{text!r} is not a valid value of off in [{section}].", "Use true or false.")
    return text == "true"


def _parse_number(section: str, name: str, text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    most, hint = next(
        (bound for suffix, bound in _BOUNDS.items() if name.endswith(suffix)),
        (inf, "Use a number from 0 on."),
    )
    if not 0 <= number <= most or number == inf:
        raise UsageError(f"{text!r} is not a valid value of {name} in [{section}].", hint)
    return number


def _suggest(name: str, known: Iterable[str]) -> str:
    from difflib import get_close_matches

    every = list(known)
    near = get_close_matches(name, every, n=1)
    if near:
        return f"Did you mean {near[0]!r}?"
    return f"It has {', '.join(every)}." if len(every) < 10 else "`gpu-tracker explain` lists the rules."

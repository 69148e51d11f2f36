"""A recording is shown to others: what looks like a password in a command is masked. Pure."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_MASK = "***"
_TELLTALES = ("password", "passwd", "secret", "token", "api-key", "api_key", "apikey", "credential")


def mask_secrets(command: Sequence[str]) -> tuple[str, ...]:
    """The command, without the values of options and variables whose names betray a secret."""
    masked: list[str] = []
    hide_next = False
    for word in command:
        name, equals, _ = word.partition("=")
        betrays = any(telltale in name.lower() for telltale in _TELLTALES)
        if hide_next and not word.startswith("-"):
            masked.append(_MASK)
        elif betrays and equals:
            masked.append(f"{name}={_MASK}")
        else:
            masked.append(_mask_url(word))
        hide_next = betrays and not equals and word.startswith("-")
    return tuple(masked)


def _mask_url(word: str) -> str:
    """`https://user:password@host` keeps its user only."""
    scheme, separator, rest = word.partition("://")
    user, at, host = rest.partition("@")
    if not separator or not at or ":" not in user or "/" in user:
        return word
    return f"{scheme}://{user.partition(':')[0]}:{_MASK}@{host}"

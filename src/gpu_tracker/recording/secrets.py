"""Masks what looks like a password in a command, since recordings are shared. Pure."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_MASK = "***"
_SECRET_NAMES = ("password", "passwd", "secret", "token", "api-key", "api_key", "apikey", "credential")


def mask_secrets(command: Sequence[str]) -> tuple[str, ...]:
    """The command, with the values of options and variables that sound secret masked."""
    masked: list[str] = []
    hide_next = False
    for word in command:
        name, equals, _ = word.partition("=")
        is_secret = any(part in name.lower() for part in _SECRET_NAMES)
        if hide_next and not word.startswith("-"):
            masked.append(_MASK)
        elif is_secret and equals:
            masked.append(f"{name}={_MASK}")
        else:
            masked.append(_mask_url(word))
        hide_next = is_secret and not equals and word.startswith("-")
    return tuple(masked)


def _mask_url(word: str) -> str:
    """In `https://user:password@host`, mask the password."""
    scheme, separator, rest = word.partition("://")
    user, at, host = rest.partition("@")
    if not separator or not at or ":" not in user or "/" in user:
        return word
    return f"{scheme}://{user.partition(':')[0]}:{_MASK}@{host}"

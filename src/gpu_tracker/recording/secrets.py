"""Masks what looks like a secret in commands, names and labels, since recordings are shared. Pure."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

# In lower case. Text with none of them holds nothing that would be masked.
_NAMES = (
    "pass",
    "pw",
    "secret",
    "token",
    "credential",
    "auth",
    "bearer",
    "cookie",
    "jwt",
    "key",
    "signature",
)
_SHAPES = (
    *(
        "ghp_",
        "gho_",
        "ghu_",
        "ghs_",
        "ghr_",
        "github_pat_",
        "glpat-",
        "akia",
        "asia",
        "xox",
        "xapp-",
        "aiza",
        "ya29.",
    ),
    *("eyj", "npm_", "pypi-", "sg.", "k_live_", "k_test_", "sk-", "hf_", "r8_", "nvapi-"),
)
_OTHERS = (
    "kennwort",
    "-otp",
    "-pin",
    "sig=",
    "dsn",
    "connect",
    "userid",
    "@tcp(",
    "@unix(",
    "jdbc:",
    "-pat",
    "pat=",
    "code=",
    "login",
    "sas",
)
# Programs with a short option for the password.
_TOOLS = (
    "mysql",
    "mariadb",
    "7z",
    "rar",
    "mongo",
    "cqlsh",
    "rabbitmq",
    "redis-cli",
    "ldap",
    "sqlcmd",
    "bcp",
    "zip",
    "openssl",
    "curl",
    "twine",
)
_LOADERS = ("sqlplus", "sqlldr", "expdp", "impdp")
_PLACES = ("://", "@", "-u", "--user", "--proxy-user")


def mask_secrets(command: Sequence[str]) -> tuple[str, ...]:
    """The command, with everything that looks secret masked."""
    if not _may_hold_secrets(" ".join(command)):
        return tuple(command)
    from .secret_forms import mask_words

    return tuple(mask_words(command))


def mask_text(text: str) -> str:
    """The same for a single text."""
    return mask_secrets((text,))[0]


def mask_labels(labels: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """Labels, each masked as an option with its value would be."""
    return tuple(
        (mask_text(name), mask_secrets((f"--{'-'.join(name.split())}", value))[1]) for name, value in labels
    )


def _may_hold_secrets(text: str) -> bool:
    """Cheap, and never wrong when it says no."""
    lower = text.lower()
    if (":" in lower or "%" in lower) and any(place in lower for place in _PLACES):
        return True
    hints = (*_NAMES, *_SHAPES, *_OTHERS, *_LOADERS, *(_TOOLS if " -" in lower else ()))
    return any(hint in lower for hint in hints)

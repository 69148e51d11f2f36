"""How secrets look: names before them, places in URLs and headers, shapes. Whatever else is in a word stays. Pure.

Loaded only for text that may hold one: compiling the patterns takes longer than starting a job should.
"""

from __future__ import annotations

import re

MASK = "***"

# ---- Names. They are compared in lower case with dashes between their parts: `dbPassword_2` is `db-password`.

_PART_START = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_NOT_LETTERS = re.compile(r"[^a-z0-9]+")
# What may follow without changing the meaning.
_TAIL = re.compile(
    r"(?:-(?:\d+|prod|production|staging|dev|test|ci|main|default|base|value|old|new|read|write)|\d)+$"
)
_SECRET_NAME = re.compile(
    r"(?:^|-)(?:pass|sshpass|pwd|auth|authorization|bearer|cookies?|jwt)$"
    r"|(?:password|passwd|passphrase|passcode|secrets?|credentials?|token|apikey)$"
    r"|(?:^|-)(?:api|access|private|secret|auth|account|signing|encryption|master|service)-?key(?:-id)?$"
)
# Switches, and the tokens of language models.
_OTHER_NAME = re.compile(
    r"^(?:no|skip|disable|without)-"
    r"|(?:^|-)(?:pad|padding|eos|bos|unk|mask|sep|cls|image|video|audio|start|end|stop|special|first|last|next|per|max|"
    r"min|num|n|blank|prefix|suffix|trigger|placeholder|control)-?token$"
)


def is_secret_name(name: str) -> bool:
    """Whether what has this name is secret."""
    plain = _NOT_LETTERS.sub("-", _PART_START.sub("-", name).lower()).strip("-")
    plain = _TAIL.sub("", plain)
    return bool(_SECRET_NAME.search(plain)) and not _OTHER_NAME.search(plain)


# ---- Words.

_NAME = r"[A-Za-z_][\w.\-]*"
_OPTION = re.compile(rf"(--?)({_NAME})")
_LONG_OPTION = re.compile(r"--[a-z][a-z0-9-]*(?:=.*)?", re.DOTALL)
_ASSIGNMENT = re.compile(rf"([+\-]{{0,2}})({_NAME})(=|:(?!//)\s*)(.*)", re.DOTALL)
_MOST_ASSIGNMENTS = 8
_NEXT_FIELD = re.compile(r"[&;]\s*[\w.\-]+=")
_USER_OPTION = re.compile(r"-u|-U|--user|--proxy-user")
_USER = re.compile(r"(?!\d+:\d+$)([^:]*):(?!//).+", re.DOTALL)


def mask_after(before: str, word: str) -> str:
    """A word of a command, given the one before it."""
    option = _OPTION.fullmatch(before)
    if option and is_secret_name(option[2]) and not _LONG_OPTION.fullmatch(word):
        return MASK
    if _USER_OPTION.fullmatch(before) and (user := _USER.fullmatch(word)):
        return f"{user[1]}:{MASK}"
    return mask_text(word)


def mask_text(text: str) -> str:
    """A word, which may be a whole program: `NAME=value` as far as it goes, then everything that can be inside."""
    done = ""
    for _ in range(_MOST_ASSIGNMENTS):  # `--env=DB_PASSWORD=X`
        assignment = _ASSIGNMENT.fullmatch(text)
        if not assignment:
            break
        lead, name, sign, value = assignment.groups()
        if is_secret_name(name):
            # A form or a connection string goes on after the value.
            rest = None if lead or sign != "=" or name.isupper() else _NEXT_FIELD.search(value)
            return f"{done}{lead}{name}{sign}{MASK}{mask_inside(value[rest.start() :]) if rest else ''}"
        if _USER_OPTION.fullmatch(lead + name) and (user := _USER.fullmatch(value)):
            return f"{done}{lead}{name}{sign}{user[1]}:{MASK}"
        if sign != "=":
            break
        done, text = f"{done}{lead}{name}=", value
    return done + mask_inside(text)


# ---- Inside a word: one row per form.

_QUOTED = r"""\\"(?:(?!\\").)*\\"|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'"""
_SCHEME = r"(?:bearer|basic|token|digest)\s+"


def _mask_named(pattern: re.Pattern[str], text: str) -> str:
    """Mask the values after secret names, but for their quotes; what follows another name may be a secret one."""
    done, at = [], 0
    while match := pattern.search(text, at):
        if not is_secret_name(match["name"]):
            done.append(text[at : match.end("name")])
            at = match.end("name")
            continue
        quote = next((quote for quote in ('\\"', '"', "'") if match["value"].startswith(quote)), "")
        done.append(f"{text[at : match.start('value')]}{quote}{MASK}{quote}")
        at = match.end()
    return "".join(done) + text[at:]


def _mask_url(match: re.Match[str]) -> str:
    scheme, user, colon, password = match["scheme"], match["user"], match["colon"], match["password"]
    if not colon:
        return f"{scheme}://{MASK}@" if scheme.lower().endswith(("http", "https")) else match[0]
    # Where the password says nothing, the user is the secret.
    return f"{scheme}://{user if password not in ('', 'x-oauth-basic') else MASK}:{MASK}@"


_HEADER = re.compile(r"(?i)\b((?:proxy-)?authorization|(?:set-)?cookie)(\s*:\s*)[^\n\"']+")
"""Ends with its line or quote, whatever is in it."""
_FIELD = re.compile(
    rf"(?is)(?<![\w.\-])-*(?P<name>{_NAME})(?:\\?[\"']\s*,\s*(?=\\?[\"'])|\\?[\"']?\s*(?:=|:(?!//))\s*)"
    rf"(?P<value>{_QUOTED}|\\?[\"'][^\n]*|(?:{_SCHEME})?[^\s&;,\"'}}\])|]+)"
)
"""Of JSON, a form or a connection string; an assignment in a script."""
_OPTION_INSIDE = re.compile(
    rf"(?s)(?<![\w\-])--?(?P<name>{_NAME})\s+(?!--[a-z])(?P<value>(?:{_QUOTED}|[^\s\"';&|)])+)"
)
"""Of a command in a script."""
_BEARER = re.compile(r"(?i)\b(bearer\s+)(?=\S*\d|\S{16})[^\s\"']+")
_USER_INSIDE = re.compile(r"(\s-u\s+[^\s:]+:)(?!\d+(?:\s|$)|//)[^\s\"']+")
_URL = re.compile(
    r"(?<![A-Za-z0-9+.\-])(?P<scheme>[A-Za-z][A-Za-z0-9+.\-]*)://(?P<user>[^\s/?#\"'@:]*)"
    r"(?:(?P<colon>:)(?P<password>(?!\d+(?:[/?#]|$))(?:[^\s/?#\"']*(?=@)|[^\s\"'@]*)))?@"
)
# Of well-known issuers. Short ones without a digit or a capital are words.
_SHAPE = re.compile(
    r"(?<![A-Za-z0-9])(?:gh[opsur]_[A-Za-z0-9]{16,}|github_pat_\w{16,}|glpat-[\w\-]{16,}|(?:AKIA|ASIA)[A-Z0-9]{12,}"
    r"|xox[a-z]-[A-Za-z0-9\-]{10,}|xapp-[A-Za-z0-9\-]{10,}|AIza[\w\-]{30,}|ya29\.[\w\-]{20,}"
    r"|eyJ[\w\-]{4,}\.[\w\-]{4,}(?:\.[\w\-]*)?|npm_[A-Za-z0-9]{30,}|pypi-[\w\-]{30,}|SG\.[\w\-]{16,}\.[\w\-]{16,}"
    r"|(?:[rsp]k_(?:live|test)_|sk-|hf_)(?:[\w\-]{30,}|(?=[\w\-]*[0-9A-Z])[\w\-]{16,}))"
)
_PRIVATE_KEY = re.compile(r"(?s)(-----BEGIN [A-Z ]*PRIVATE KEY-----).*?(?=-----END|\Z)")


def mask_inside(text: str) -> str:
    """All forms, one after the other."""
    text = _HEADER.sub(rf"\1\2{MASK}", text)
    for pattern in (_FIELD, _OPTION_INSIDE):
        text = _mask_named(pattern, text)
    for pattern in (_BEARER, _USER_INSIDE, _PRIVATE_KEY):
        text = pattern.sub(rf"\1{MASK}", text)
    return _SHAPE.sub(MASK, _URL.sub(_mask_url, text))

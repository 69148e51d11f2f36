"""How secrets look: names before them, places in URLs and headers, shapes. Whatever else is in a word stays. Pure.

Loaded only for text that may hold one: compiling the patterns takes longer than starting a job should.
"""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

MASK = "***"

# ---- Names. They are compared in lower case with dashes between their parts: `dbPassword_2` is `db-password`.

_PART_START = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_NOT_LETTERS = re.compile(r"[^a-z0-9]+")
# What may follow without changing the meaning.
_TAIL = re.compile(
    r"(?:-(?:\d+|prod|production|staging|dev|test|ci|main|default|base|value|old|new|read|write)|\d)+$"
)
_SECRET_NAME = re.compile(
    r"(?:^|-)(?:(?:ssh|pg|my|db|user|root|admin|smtp|mail|ftp|ldap|bind|http|proxy|redis|mongo|sudo|vnc|keystore|require)?pass|(?:root|admin|user|db)?pwd?|(?:master)?auth|authorization|bearer|cookies?|jwt)$"
    r"|(?:pass-?words?|passwds?|passphrases?|passcode|passwort|kennwort|mot-de-passe|secrets?|credentials?|token|apikeys?|shared-access-signature)$"
    r"|^x-(?:amz|goog)-signature$"
    r"|(?:^|-)(?:github|gitlab|gh|git|bitbucket|azure|ado)-pat$"
    r"|(?:^|-)(?:api|access|private|secret|auth|account|signing|encryption|master|service|licen[cs]e|"
    r"wandb|kaggle|comet|neptune|clearml|datadog|stripe|"
    r"openai|anthropic|gemini|mistral|cohere|groq|deepseek|openrouter|huggingface|hf)-?keys?(?:-id)?$"
)
# Of an option they name a secret; in a program they may be anything.
_SECRET_OPTION = re.compile(r"(?:^|-)(?:signature|otp|pin)$")
# Of these names only a value that looks random is secret: `--key user_id` and `--key id_rsa` tell nothing.
_KEY_NAME = re.compile(r"(?:^|-)(?:keys?|tokens|pat|sas)$|(?:^|-)(?:passwords?|secrets?|credentials?)-")
# Options of these names may have several values.
_SEVERAL = re.compile(
    r"(?i)--?(?:[\w.\-]+[_.\-])?(?:passwords|passwds|passphrases|secrets|api[_-]?keys|access[_-]keys)"
)
_RANDOM = re.compile(
    r"(?=[A-Za-z+/]*\d[\dA-Za-z+/]*\d)(?=[A-Za-z\d+/]*\d[A-Za-z])[A-Za-z\d+/]{16,}={0,2}"
    r"|[\da-fA-F]{8}(?:-[\da-fA-F]{4}){3}-[\da-fA-F]{12}"
)
# Names of connection strings, which may hold `user/password@place` without a scheme.
_CONNECTION_NAME = re.compile(
    r"(?:^|-)(?:dsn|connect|connection|connection-string|userid|"
    r"(?:db|database|sql|mysql|postgres|postgresql|mongo|mongodb|redis|broker|storage)-?ur[il]|proxy)$"
)
_CONNECTION = re.compile(r"([\w$#.\-]+[/:])(?!/)[^@\s]+(@\S+)")
# Switches, and the tokens of language models.
_OTHER_NAME = re.compile(
    r"^(?:no|skip|disable|without)-"
    r"|(?:^|-)(?:pad|padding|eos|bos|unk|mask|sep|cls|image|video|audio|start|end|stop|special|first|last|next|per|max|"
    r"min|num|n|blank|prefix|suffix|trigger|placeholder|control)-?token$"
)


def is_secret_option(name: str) -> bool:
    """Whether the value of the option with this name is secret."""
    return is_secret_name(name) or bool(_SECRET_OPTION.search(name.lower()))


def is_secret_name(name: str) -> bool:
    """Whether what has this name is secret."""
    plain = _simplify(name)
    is_token = name.endswith("_PAT")  # of a variable; an option may be a pattern
    return is_token or (bool(_SECRET_NAME.search(plain)) and not _OTHER_NAME.search(plain))


def mask_value(name: str, value: str) -> str | None:
    """The value that has this name, masked by what both look like; None if it is not secret."""
    plain = _simplify(name)
    parts = value.split(",")
    masked = [MASK if _RANDOM.fullmatch(part.strip("\"'")) else part for part in parts]
    if _KEY_NAME.search(plain) and masked != parts:
        return ",".join(masked)
    if _CONNECTION_NAME.search(plain) and (connection := _CONNECTION.fullmatch(value)):
        return f"{connection[1]}{MASK}{connection[2]}"
    return None


def _simplify(name: str) -> str:
    plain = _NOT_LETTERS.sub("-", _PART_START.sub("-", name).lower()).strip("-")
    return _TAIL.sub("", plain)


# ---- Words.

_NAME = r"[A-Za-z_][\w.\-]*"
_OPTION = re.compile(rf"(--?)({_NAME})")
_LONG_OPTION = re.compile(r"--[a-z][a-z0-9-]*(?:=.*)?", re.DOTALL)
_ASSIGNMENT = re.compile(rf"([+\-]{{0,2}})({_NAME})(=|:(?!//)\s*)(.*)", re.DOTALL)
_MOST_ASSIGNMENTS = 8
_NEXT_FIELD = re.compile(r"[&;]\s*[A-Za-z][\w.\-]*=[\w\"'/.(\[{]")
_USER_OPTION = re.compile(r"-u|-U|--user|--proxy-user")
_USER = re.compile(r"(?!\d+:\d+$)([^:%]*:(?!//)|[\w.\-\\/]+%).+", re.DOTALL)
_HEADER_START = re.compile(
    r"(?i)(?:.*[=\s])?(?:proxy-)?authorization:\s*(?:bearer|basic|token|digest)?", re.DOTALL
)
_LIKELY = r"(?=\S*\d|\S{16})[^\s\"']+"
_BEARER_WORDS = re.compile(rf"(?i)bearer {_LIKELY}")
_SCHEME_WORD = re.compile(r"(?i)bearer|basic|token|digest")
# Programs with a short option for the password, which elsewhere is a port or a path. Of the first ones it must be one word
# with its value: alone it asks for the password.
_TOOLS = (
    (r"(?:mysql|mariadb)[\w\-]*|7z[arz]?|(?:un)?rar", "-p", r""),
    (r"sshpass|mongo(?:sh|dump|restore|export|import)?|cqlsh|rabbitmqadmin", "-p", r"\s*"),
    (r"(?:docker|podman|nerdctl|buildah|skopeo|oc|az)\s+login", "-p", r"\s*"),
    (r"redis-cli", "-a", r"\s*"),
    (r"ldap(?:search|add|modify|delete|passwd|whoami)", "-w", r"\s*"),
    (r"sqlcmd|bcp|(?:un)?zip", "-P", r"\s*"),
    (r"openssl\s+(?:enc|(?:aes|aria|camellia|chacha|des)\S*)", "-k", r"\s+"),
    (r"curl", "-b", r"\s*"),
    (r"curl", "-u", r""),
    (r"twine\s+upload", "-p", r"\s*"),
)
# Programs that take the secret as it is.
_LOGIN = r"(?:(?:wandb|vault)\s+login|openssl\s+-k)"
_LOGIN_WORDS = re.compile(rf"(?:.*/)?{_LOGIN}", re.DOTALL)
_ORACLE = r"sqlplus|sqlldr|expdp|impdp"
_ORACLE_TOOL = re.compile(rf"(?:.*/)?(?:{_ORACLE})", re.DOTALL)
_TOOL_WORDS = tuple(
    (re.compile(rf"(?:.*/)?(?:{program})", re.DOTALL), option, bool(between))
    for program, option, between in _TOOLS
)


def _find_tool(before: str, word: str) -> dict[str, bool]:
    """The options for the password of a program, and whether the password may be the next word."""
    return {
        option: may_be_apart
        for program, option, may_be_apart in _TOOL_WORDS
        if program.fullmatch(word) or program.fullmatch(f"{before} {word}")
    }


def mask_words(command: Sequence[str]) -> Iterator[str]:
    """All words of a command, each by what comes before it."""
    earlier, before, is_header, is_several, is_assigned = "", "", False, False, False
    tool: dict[str, bool] = {}
    for word in command:
        if word == "=":  # `--token = X`
            is_assigned = True
            yield word
            continue
        is_scheme = bool(_SCHEME_WORD.fullmatch(word))
        masked = ""
        if is_header and not is_scheme and not _LONG_OPTION.fullmatch(word):
            yield MASK
        elif tool.get(before):
            yield MASK
            del tool[before]  # what follows is another command, with a port perhaps
        elif word[:2] in tool and len(word) > 2:
            del tool[word[:2]]
            masked = f"{word[:2]}{MASK}"
            yield masked
        elif (is_several and not word.startswith("-")) or (
            _is_given(earlier, before, is_assigned) and not _LONG_OPTION.fullmatch(word)
        ):
            yield MASK
        else:
            yield mask_after(before, word)
        is_several = bool(_SEVERAL.fullmatch(word)) or (is_several and not word.startswith("-"))
        is_header = bool(_HEADER_START.fullmatch(word)) or (is_header and is_scheme)
        tool = _find_tool(before, word) or tool
        # `-pmypassword` is not the option before a secret.
        earlier, before, is_assigned = before, masked or word, False


def _is_given(earlier: str, before: str, is_assigned: bool) -> bool:
    """Whether a secret follows these two words: `wandb login X`, `aws configure set aws_secret_access_key X`."""
    return bool(_LOGIN_WORDS.fullmatch(f"{earlier} {before}")) or (
        (is_assigned or earlier == "set") and is_secret_name(before)
    )


def mask_after(before: str, word: str) -> str:
    """A word of a command, given the one before it."""
    option = _OPTION.fullmatch(before.removesuffix("="))  # `--token= X`, too
    if option and is_secret_option(option[2]) and not _LONG_OPTION.fullmatch(word):
        return MASK
    if _BEARER_WORDS.fullmatch(f"{before} {word}"):
        return MASK
    if _USER_OPTION.fullmatch(before) and (user := _USER.fullmatch(word)):
        return f"{user[1]}{MASK}"
    if _ORACLE_TOOL.fullmatch(before) and (connection := _CONNECTION.fullmatch(word)):
        return f"{connection[1]}{MASK}{connection[2]}"
    return (option and mask_value(option[2], word)) or mask_text(word)


def mask_text(text: str) -> str:
    """A word, which may be a whole program: `NAME=value` as far as it goes, then everything that can be inside."""
    done = ""
    for _ in range(_MOST_ASSIGNMENTS):  # `--env=DB_PASSWORD=X`
        assignment = _ASSIGNMENT.fullmatch(text)
        if not assignment:
            break
        lead, name, sign, value = assignment.groups()
        if is_secret_name(name) or (lead == "--" and is_secret_option(name)):
            # A form or a connection string goes on after the value.
            rest = None if lead or sign != "=" or name.isupper() else _NEXT_FIELD.search(value)
            return f"{done}{lead}{name}{sign}{MASK}{mask_inside(value[rest.start() :]) if rest else ''}"
        if _USER_OPTION.fullmatch(lead + name) and (user := _USER.fullmatch(value)):
            return f"{done}{lead}{name}{sign}{user[1]}{MASK}"
        if masked := mask_value(name, value):
            return f"{done}{lead}{name}{sign}{masked}"
        if sign != "=":
            break
        done, text = f"{done}{lead}{name}=", value
    return done + mask_inside(text)


# ---- Inside a word: one row per form.

_QUOTED = r"""\\"(?:(?!\\").)*\\"|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'"""
_PIECE = re.compile(rf"(?s){_QUOTED}|.")
_SCHEME = r"(?:bearer|basic|token|digest)\s+"


def _mask_named(pattern: re.Pattern[str], is_secret: Callable[[str], bool], text: str) -> str:
    """Mask the values after secret names, but for their quotes; what follows another name may be a secret one."""
    done, at = [], 0
    while match := pattern.search(text, at):
        if not is_secret(match["name"]) or _is_whole_text(match):
            done.append(text[at : match.end("name")])
            at = match.end("name")
            continue
        quote = next((quote for quote in ('\\"', '"', "'") if match["value"].startswith(quote)), "")
        done.append(f"{text[at : match.start('value')]}{quote}{MASK}{quote}")
        at = max(match.end(), _find_close(text, match.start("value")))
    return "".join(done) + text[at:]


def _find_close(text: str, at: int) -> int:
    """The end of the list or object that begins here, or of the text; here if none begins."""
    depth = 0
    for piece in _PIECE.finditer(text, at):
        depth += (piece[0] in ("[", "{")) - (piece[0] in ("]", "}"))
        if depth <= 0:
            return piece.end() if piece.start() > at else at
    return len(text)


def _is_whole_text(match: re.Match[str]) -> bool:
    """Whether the quote after the name is the end of a text, as in `print("token:", 3)`, not the start of a value."""
    before, quote = match.string[max(0, match.start() - 1) : match.start()], match["value"][0]
    between = match.string[match.end("name") : match.start("value")]
    return quote in ("'", '"') and before == quote and quote not in between


def _mask_url(match: re.Match[str]) -> str:
    scheme, user, colon, password = match["scheme"], match["user"], match["colon"], match["password"]
    if not colon:
        return f"{scheme}://{MASK}@" if scheme.lower().endswith(("http", "https")) else match[0]
    # Where the password says nothing, the user is the secret.
    return f"{scheme}://{user if password not in ('', 'x-oauth-basic') else MASK}:{MASK}@"


_HEADER = re.compile(r"(?i)\b((?:proxy-)?authorization|(?:set-)?cookie)(\s*:\s*)[^\n\"']+")
"""Ends with its line or quote, whatever is in it."""
_FIELD = re.compile(
    rf"(?is)(?:(?<![\w.\-])|(?<=%26))-*(?P<name>{_NAME})(?:\\?[\"']\s*,\s*(?=\\?[\"'])|\\?[\"']\s*\]\s*=(?!=)\s*|\\?[\"']?\s*(?:=|%3D|:(?!//))\s*)"
    rf"(?P<value>{_QUOTED}|\\?[\"'][^\n]*|(?:{_SCHEME})?[^\s&;,\"'}}\])|]+)"
)
"""Of JSON, a form or a connection string; an assignment in a script."""
_ELEMENT = re.compile(rf"<(?P<name>{_NAME})(?:\s[^<>]*)?>(?P<value>[^<]+)(?=</)")
_OPTION_INSIDE = re.compile(
    rf"(?s)(?<![\w\-])--?(?P<name>{_NAME})\s+(?!--[a-z])(?P<value>(?:{_QUOTED}|[^\s\"';&|)])+)"
)
"""Of a command in a script."""
_BEARER = re.compile(rf"(?i)\b(bearer\s+){_LIKELY}")
_USER_INSIDE = re.compile(r"(\s-u\s+[^\s:]+:)(?!\d+(?:\s|$)|//)[^\s\"']+")
_QUERY = re.compile(r"(?i)([?&](?:sig|signature|key|code)=)[^\s&#\"']+")
_TOOLS_INSIDE = tuple(
    re.compile(
        rf"(?s)((?<![\w.\-])(?:{program})\s(?:[^\n;|&]{{0,200}}?\s)??{option}{between})(?:{_QUOTED}|[^\s\"';&|)]+)"
    )
    for program, option, between in _TOOLS
)
_LOGIN_INSIDE = re.compile(rf"((?<![\w.\-]){_LOGIN}\s+)(?!-)(?:{_QUOTED}|[^\s\"';&|)]+)")
_ORACLE_LOGIN = re.compile(rf"((?:(?<![\w.\-])(?:{_ORACLE})\s+|\bjdbc:oracle:thin:)[\w$#]+/)[^@\s\"']+(?=@)")
_WEBHOOK = re.compile(
    r"(?i)(https://(?:hooks\.slack\.com/services|discord(?:app)?\.com/api/webhooks|\w+\.webhook\.office\.com)/)[^\s\"']+"
)
"""Who has the address may write."""
_TCP = re.compile(r"((?<![\w.\-])[\w.\-]+:)[^@\s:]+(?=@(?:tcp|unix)\()")
_URL = re.compile(
    r"(?<![A-Za-z0-9+.\-])(?P<scheme>[A-Za-z][A-Za-z0-9+.\-]*)://(?P<user>[^\s/?#\"'@:]*)"
    r"(?:(?P<colon>:)(?P<password>(?!\d+(?:[/?#]|$))(?:[^\s/?#\"']*(?=@)|[^\s\"'@]*)))?@"
)
# Of well-known issuers. Short ones without a digit or a capital are words.
_SHAPE = re.compile(
    r"(?<![A-Za-z0-9])(?:gh[opsur]_[A-Za-z0-9]{16,}|github_pat_\w{16,}|glpat-[\w\-]{16,}|(?:AKIA|ASIA)[A-Z0-9]{12,}"
    r"|xox[a-z]-[A-Za-z0-9\-]{10,}|xapp-[A-Za-z0-9\-]{10,}|AIza[\w\-]{30,}|ya29\.[\w\-]{20,}"
    r"|eyJ[\w\-]{4,}\.[\w\-]{4,}(?:\.[\w\-]*)?|npm_[A-Za-z0-9]{30,}|pypi-[\w\-]{30,}|SG\.[\w\-]{16,}\.[\w\-]{16,}"
    r"|[rsp]k_(?:live|test)_\w{16,}|r8_[A-Za-z0-9]{30,}|nvapi-[\w\-]{20,}"
    r"|(?:sk-|hf_)(?:[\w\-]{30,}|(?=[\w\-]*[0-9A-Z])[\w\-]{16,}))"
)
_PRIVATE_KEY = re.compile(r"(?s)(-----BEGIN [A-Z ]*PRIVATE KEY-----).*?(?=-----END|\Z)")


def mask_inside(text: str) -> str:
    """All forms, one after the other."""
    text = _HEADER.sub(rf"\1\2{MASK}", text)
    for named, is_secret in (
        (_FIELD, is_secret_name),
        (_ELEMENT, is_secret_name),
        (_OPTION_INSIDE, is_secret_option),
    ):
        text = _mask_named(named, is_secret, text)
    for pattern in (
        _BEARER,
        _USER_INSIDE,
        _PRIVATE_KEY,
        _QUERY,
        _TCP,
        _ORACLE_LOGIN,
        _WEBHOOK,
        _LOGIN_INSIDE,
        *_TOOLS_INSIDE,
    ):
        text = pattern.sub(rf"\1{MASK}", text)
    return _SHAPE.sub(MASK, _URL.sub(_mask_url, text))

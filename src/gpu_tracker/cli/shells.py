"""Scripts with which shells complete what is typed, from the described command line. Pure."""

from __future__ import annotations

from shlex import quote

from .examples import NAME

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .describe import Command, Option

_OTHER_NAME = "gput"
# After these, another command is completed.
_RUNNING = ("run",)


def complete_bash(commands: Sequence[Command]) -> str:
    """For bash 4 or newer; it needs no other package."""
    options = "".join(
        f"    {quote(command.name)}) echo {quote(' '.join(_list_flags(command)))} ;;\n"
        for command in commands
    )
    values = "".join(
        f"    {' | '.join(quote(f'{command.name} {flag}') for flag in option.flags or ('',))}) echo {quote(' '.join(option.values))} ;;\n"
        for command in commands
        for option in (*command.options, *command.places)
        if option.values
    )
    taking = "".join(
        f"    {' | '.join(quote(f'{command.name} {flag}') for flag in flags)}) return 0 ;;\n"
        for command in commands
        if (flags := [flag for option in command.options if option.takes_value for flag in option.flags])
    )
    return f"""\
# Completion of {NAME} for bash: eval "$({NAME} completion bash)"
_gpu_tracker_options() {{
    case "$1" in
{options}    esac
}}
_gpu_tracker_values() {{
    case "$1 $2" in
{values}    esac
}}
_gpu_tracker_takes_value() {{
    case "$1 $2" in
{taking}    esac
    return 1
}}
_gpu_tracker() {{
    local current=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}} command="" words="" at
    COMPREPLY=()
    for ((at = 1; at < COMP_CWORD; at++)); do
        case "${{COMP_WORDS[at]}}" in
            --)
                if ((COMP_CWORD == at + 1)); then COMPREPLY=($(compgen -c -- "$current")); fi
                return ;;
            -*) [[ $at == 1 ]] && break ;;
            *)
                if [[ -z $command ]]; then command=${{COMP_WORDS[at]}}
                elif [[ $at == 2 && -n $(_gpu_tracker_options "$command ${{COMP_WORDS[at]}}") ]]; then command+=" ${{COMP_WORDS[at]}}"
                fi ;;
        esac
    done
    if _gpu_tracker_takes_value "$command" "$before"; then
        words=$(_gpu_tracker_values "$command" "$before")
    elif [[ $current == -* ]]; then
        words=$(_gpu_tracker_options "$command")
    elif [[ -z $command && COMP_CWORD -eq 1 ]]; then
        words={quote(" ".join(_list_names(commands)))}
    else
        words=$(_gpu_tracker_values "$command" "")
    fi
    COMPREPLY=($(compgen -W "$words" -- "$current"))
}}
complete -o bashdefault -o default -F _gpu_tracker {NAME} {_OTHER_NAME}
"""


def complete_zsh(commands: Sequence[Command]) -> str:
    """A file in `$fpath`, or evaluated after `compinit`."""
    named = [command for command in commands if len(command.words) == 1]
    names = "".join(f"    {quote(f'{command.name}:{command.summary}')}\n" for command in named)
    cases = "".join(f"    {command.name}) {_call_arguments(command, commands)} ;;\n" for command in named)
    return f"""\
#compdef {NAME} {_OTHER_NAME}
# Completion of {NAME} for zsh: eval "$({NAME} completion zsh)", after compinit
_gpu_tracker() {{
  local -a known
  known=(
{names}  )
  if (( CURRENT == 2 )) && [[ $words[2] != -* ]]; then
    _describe command known
    return
  fi
  local name=$words[2]
  case $name in
    -*) {_call_arguments(commands[0], ())}; return ;;
  esac
  shift words
  (( CURRENT-- ))
  case $name in
{cases}  esac
}}
if [[ $funcstack[1] == _gpu_tracker ]]; then _gpu_tracker "$@"; else compdef _gpu_tracker {NAME} {_OTHER_NAME}; fi
"""


def complete_fish(commands: Sequence[Command]) -> str:
    """A file in a directory of completions, or sourced."""
    lines = [f"# Completion of {NAME} for fish: {NAME} completion fish | source"]
    for command in commands:
        if len(command.words) == 1:
            lines.append(
                f"complete -c {NAME} -n __fish_is_first_arg -f -a {quote(command.name)} -d {quote(command.summary)}"
            )
        condition = quote(_find_fish_condition(command))
        lines += [f"complete -c {NAME} -n {condition} {_to_fish(option)}" for option in command.options]
        lines += [
            f"complete -c {NAME} -n {condition} -f -a {quote(' '.join(place.values))}"
            for place in command.places
            if place.values
        ]
        if command.name in _RUNNING:
            lines.append(
                f"complete -c {NAME} -n {quote(f'{_find_fish_condition(command)}; and contains -- -- (commandline -opc)')}"
                " -a '(__fish_complete_command)'"
            )
    return "\n".join([*lines, f"complete -c {_OTHER_NAME} -w {NAME}", ""])


SHELLS: dict[str, Callable[[Sequence[Command]], str]] = {
    "bash": complete_bash,
    "zsh": complete_zsh,
    "fish": complete_fish,
}


def _list_names(commands: Sequence[Command]) -> list[str]:
    return [command.name for command in commands if len(command.words) == 1]


def _list_flags(command: Command) -> list[str]:
    return [flag for option in command.options for flag in option.flags]


def _call_arguments(command: Command, commands: Sequence[Command]) -> str:
    actions = [one for one in commands if one.words[:-1] == command.words and len(one.words) > 1]
    specs = [_to_zsh(option) for option in command.options]
    if command.name in _RUNNING:
        specs.append("'*::command:_normal'")
    else:
        specs += [f"'*:{_escape(place.placeholder)}:{_find_values(place)}'" for place in command.places[:1]]
    call = " \\\n      ".join(["_arguments -S", *specs])
    if command.name in _RUNNING:
        return (
            "if (( ${words[(i)--]} < CURRENT )); then\n"
            "      (( CURRENT -= ${words[(i)--]} )); shift ${words[(i)--]} words; _normal\n"
            f"    else\n      {call}\n    fi"
        )
    if not actions:
        return call
    inner = "".join(
        f"      {one.words[-1]}) shift words; (( CURRENT-- )); {_call_arguments(one, ())} ;;\n"
        for one in actions
    )
    return f"case $words[2] in\n{inner}      *) {call} ;;\n    esac"


def _to_zsh(option: Option) -> str:
    apart = f"'({' '.join(option.flags)})'" if len(option.flags) > 1 else ""
    flags = f"{{{','.join(option.flags)}}}" if len(option.flags) > 1 else option.flags[0]
    value = f":{_escape(option.placeholder)}:{_find_values(option)}" if option.takes_value else ""
    return f"{apart}{flags}'[{_escape(option.meaning)}]{value}'"


def _find_values(option: Option) -> str:
    return f"({' '.join(option.values)})" if option.values else "_files"


def _escape(text: str) -> str:
    """Inside single quotes, in a specification of `_arguments`."""
    for sign in ("\\", ":", "[", "]"):
        text = text.replace(sign, f"\\{sign}")
    return text.replace("'", "'\\''")


def _to_fish(option: Option) -> str:
    words = [_name_for_fish(flag) for flag in option.flags]
    if option.values:
        words.append(f"-x -a {quote(' '.join(option.values))}")
    elif option.takes_value:
        words.append("-r")
    return f"{' '.join(words)} -d {quote(option.meaning)}"


def _name_for_fish(flag: str) -> str:
    name = flag.lstrip("-")
    if flag.startswith("--"):
        return f"-l {quote(name)}"
    return f"-s {quote(name)}" if len(name) == 1 else f"-o {quote(name)}"


def _find_fish_condition(command: Command) -> str:
    seen = "; and ".join(f"__fish_seen_subcommand_from {word}" for word in command.words)
    return seen or "__fish_is_first_arg"

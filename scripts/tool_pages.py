#!/usr/bin/env python3
"""Writes the tool's man page and its completions for bash, zsh and fish: tool_pages.py TOOL FOLDER

Everything in them is read from `TOOL --help` and `TOOL COMMAND --help`.
"""

import datetime
import os
import pathlib
import re
import subprocess
import sys
import typing

COLUMN = 30  # where the descriptions of the help begin


class Option(typing.NamedTuple):
    names: list  # "-h", "--help"
    values: list  # those that the help lists, or none
    takes_value: bool
    description: str


class Command(typing.NamedTuple):
    name: str
    help: str
    summary: str
    options: list


def help_of(tool, *words):
    return subprocess.run([tool, *words, "--help"], capture_output=True, text=True, check=True).stdout


def listed(text, heading):
    """(left column, description) of the lines under a heading, up to the next line that is not indented."""
    lines = text.splitlines()
    found = []
    for line in lines[lines.index(heading) + 1 :] if heading in lines else []:
        if not line.startswith("  "):
            break
        if line.startswith(" " * COLUMN) and found:
            found[-1][1] = f"{found[-1][1]} {line.strip()}".strip()
        else:
            left, _, right = line.strip().partition("  ")
            found.append([left, right.strip()])
    return found


def options_in(text):
    """The options under any heading."""
    headings = [line for line in text.splitlines() if re.fullmatch(r"\S[^:]*:", line)]
    options = []
    for heading in headings:
        for left, description in listed(text, heading):
            if not left.startswith("-"):
                continue
            words = left.split(" ", 1)
            values = re.search(r"\{([^}]*)\}", left)
            options.append(Option(words[0].split(","), values[1].split(",") if values else [], len(words) > 1, description))
    return options


def read_command(tool, name):
    text = help_of(tool, name)
    return Command(name, text, text.splitlines()[0], options_in(text))


def roff(text):
    return "\n".join(re.sub(r"^([.'])", r"\\&\1", line.replace("\\", "\\e").replace("-", "\\-")) for line in text.splitlines())


def man_page(version, summary, commands):
    parts = [
        f'.TH TEGULA 1 "{page_date()}" "{version}"',
        ".SH NAME\n" + roff(summary.replace(":", " \\-", 1)).replace("\\e\\-", "\\-"),
        ".SH SYNOPSIS\n.B tegula\n.I command\n[\n.I options\n]",
        ".SH COMMANDS",
    ]
    for command in commands:
        body = command.help.split("\n", 1)[1].strip("\n")
        parts.append(f".SS {roff(command.name)}\n{roff(command.summary)}\n.PP\n.nf\n{roff(body)}\n.fi")
    parts.append(".SH EXIT STATUS\n0, where all is well; 2, where the command line is malformed; else 1.")
    return "\n".join(parts) + "\n"


def page_date():
    stamp = os.environ.get("SOURCE_DATE_EPOCH")
    day = datetime.datetime.fromtimestamp(int(stamp), datetime.timezone.utc) if stamp else datetime.datetime.now()
    return day.strftime("%Y-%m-%d")


def bash_completion(commands):
    cases = []
    for command in commands:
        words = " ".join(name for option in command.options for name in option.names)
        values = "".join(
            f"\n        {'|'.join(option.names)}) COMPREPLY=($(compgen -W '{' '.join(option.values)}' -- \"$word\")); return ;;"
            for option in command.options
            if option.values
        )
        choices = f'\n      case $before in{values}\n      esac' if values else ""
        cases.append(f"    {command.name}){choices}\n      words='{words}' ;;")
    names = " ".join(command.name for command in commands)
    return f"""# bash completion of tegula, made by scripts/tool_pages.py
_tegula() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD - 1]}} words='--help --version {names}'
  case ${{COMP_WORDS[1]}} in
{chr(10).join(cases)}
  esac
  if ((COMP_CWORD == 1)); then words='--help --version {names}'; fi
  COMPREPLY=($(compgen -W "$words" -- "$word"))
}}
complete -o default -F _tegula tegula
"""


def quoted(text):
    return text.replace("'", "'\\''")


def zsh_completion(commands):
    summaries = "\n".join(f"    '{command.name}:{quoted(command.summary)}'" for command in commands)
    cases = []
    for command in commands:
        specs = []
        for option in command.options:
            note = re.sub(r"([\[\]:])", r"\\\1", quoted(option.description))
            for name in option.names:
                value = f":value:({' '.join(option.values)})" if option.values else ":value:_files" if option.takes_value else ""
                specs.append(f"'{name}[{note}]{value}'")
        cases.append(f"    {command.name}) _arguments {' '.join(specs)} '*:file:_files' ;;")
    return f"""#compdef tegula
# zsh completion of tegula, made by scripts/tool_pages.py
local -a commands=(
{summaries}
)
if ((CURRENT == 2)); then
  _describe command commands
else
  local command=$words[2]
  shift words
  ((CURRENT--))
  case $command in
{chr(10).join(cases)}
  esac
fi
"""


def fish_completion(commands):
    lines = ["# fish completion of tegula, made by scripts/tool_pages.py"]
    for command in commands:
        lines.append(f"complete -c tegula -n __fish_use_subcommand -f -a {command.name} -d '{quoted(command.summary)}'")
        for option in command.options:
            names = " ".join(f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in option.names)
            value = f" -x -a '{' '.join(option.values)}'" if option.values else " -r" if option.takes_value else ""
            lines.append(f"complete -c tegula -n '__fish_seen_subcommand_from {command.name}' {names}{value} -d '{quoted(option.description)}'")
    return "\n".join(lines) + "\n"


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    tool, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    text = help_of(tool)
    version = subprocess.run([tool, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    commands = [read_command(tool, name) for name, _ in listed(text, "Subcommands:")]
    if not commands:
        sys.exit(f"tool_pages: {tool} --help lists no subcommands")
    pages = {
        "tegula.1": man_page(version, text.splitlines()[0], commands),
        "tegula.bash": bash_completion(commands),
        "_tegula": zsh_completion(commands),
        "tegula.fish": fish_completion(commands),
    }
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in pages.items():
        (folder / name).write_text(content, encoding="utf-8")


if __name__ == "__main__":
    main()

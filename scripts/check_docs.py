#!/usr/bin/env python3
"""Holds README.md, docs/ and the READMEs of examples/ to the repository.

    check_docs.py [--program PATH]... [--write]

- A link to a file or folder leads to one, and a link to a heading (#like-this) to a heading of that page.
- `./run NAME` names a command that ./run has.
- No mark of a merge is left.
- A ```cpp block of the README, or of a walk through a kernel (QUOTING), stands, line by line, in a source file that is compiled (tests/,
  examples/, include/, src/, bench/).
- A ```console block shows what its commands print, for commands `$ NAME ...` where NAME is a program given by --program. A line `...` stands
  for any lines. With --write, a block without such a line is rewritten to what its commands print: look at the difference before you
  commit it.
"""

import argparse
import pathlib
import re
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
QUOTING = ("README.md", "checker.md", "hopper_gemm.md", "blackwell.md", "tensors.md", "pipelines.md", "porting_from_cute.md")
COMPILED = ("tests", "examples", "include", "src", "bench")
FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def pages():
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "examples").rglob("README.md"))]


def anchors(page):
    """The anchors of a page's headings, as most readers of Markdown form them."""
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def faults_of_links(page, text):
    for target in re.findall(r"\]\(([^)\s]+)\)", FENCE.sub("", text)):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        if not file.exists():
            yield f"links to {target}, which is not there"
        elif anchor and file.suffix == ".md" and anchor not in anchors(file):
            yield f"links to {target}, and {file.name} has no such heading"


def faults_of_run_commands(text):
    script = (ROOT / "run").read_text(encoding="utf-8")
    usage = script[script.index("usage: ./run COMMAND") : script.index("\nTEXT\n")]
    known = set(re.findall(r"^  ([\w-]+) ", usage, re.MULTILINE))
    for name in sorted(set(re.findall(r"\./run ([\w-]+)", text)) - known):
        yield f"says ./run {name}, and ./run has no such command"


def faults_of_merges(text):
    """Marks of a merge, also as mdformat has escaped them."""
    marks = re.compile(r"^[|> \\]*(<<<<<<<|<<\\<<|>>>>>>>|> > > > )", re.MULTILINE)
    for mark in marks.findall(FENCE.sub("", text)):
        yield f"has a mark of a merge: {mark}"


def squeezed(text):
    """The lines of a text without indentation and empty lines."""
    return [line.strip() for line in text.splitlines() if line.strip()]


def contains(lines, block):
    return any(lines[start : start + len(block)] == block for start in range(len(lines) - len(block) + 1))


def faults_of_snippets(text):
    sources = [file for folder in COMPILED for file in (ROOT / folder).rglob("*") if file.suffix in (".hpp", ".cpp", ".cu")]
    compiled = [squeezed(file.read_text(encoding="utf-8")) for file in sources]
    for language, body in FENCE.findall(text):
        block = squeezed(body)
        if language == "cpp" and not any(contains(lines, block) for lines in compiled):
            yield f"shows C++ that is compiled nowhere: {block[0]}"


def matches(shown, printed):
    """Whether the printed lines are the shown ones, where a shown `...` stands for any number of lines."""
    pattern = "".join("(?:.*\n)*?" if line.strip() == "..." else re.escape(line.rstrip()) + " *\n" for line in shown)
    return re.fullmatch(pattern, "".join(line + "\n" for line in printed)) is not None


def commands_of(block, programs):
    """Of each command of a console block that names a program: its line, the lines shown after it, and those that it prints."""
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        command, *shown = part.rstrip("\n").split("\n")
        words = shlex.split(command)
        if words[0] in programs:
            done = subprocess.run([programs[words[0]], *words[1:]], capture_output=True, text=True, check=False, cwd=ROOT)
            yield command, shown, (done.stdout + done.stderr).rstrip("\n").splitlines()


def faults_of_console(text, programs):
    for language, body in FENCE.findall(text):
        for command, shown, printed in commands_of(body, programs) if language == "console" else ():
            if not matches(shown, printed):
                yield f"`{command}` prints something else:\n" + "\n".join("    " + line for line in printed[:40])


def rewritten(text, programs):
    """The text with every console block as its commands print it, but those that leave out lines."""

    def block(match):
        commands = list(commands_of(match[2], programs)) if match[1] == "console" else []
        left_out = any(line.strip() == "..." for _, shown, _ in commands for line in shown)
        if left_out or not commands:
            return match[0]
        return "```console\n" + "".join(f"$ {command}\n" + "".join(line + "\n" for line in printed) for command, _, printed in commands) + "```"

    return FENCE.sub(block, text)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", type=pathlib.Path, action="append", default=[], help="a built program that pages show")
    parser.add_argument("--write", action="store_true", help="rewrite what commands print")
    arguments = parser.parse_args()
    programs = {path.name: path.resolve() for path in arguments.program}
    wrong = 0
    for page in pages():
        text = page.read_text(encoding="utf-8")
        if arguments.write:
            text = rewritten(text, programs)
            page.write_text(text, encoding="utf-8")
        found = [*faults_of_links(page, text), *faults_of_run_commands(text), *faults_of_merges(text)]
        if page.name in QUOTING:
            found += faults_of_snippets(text)
        found += faults_of_console(text, programs)
        for fault in found:
            print(f"{page.relative_to(ROOT)}: {fault}")
        wrong += len(found)
    print(f"{len(pages())} pages, {wrong} faults")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

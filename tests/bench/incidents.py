"""Holds what docs/incidents.md shows against what the commands print: ``python -m tests.bench.incidents LAKES``

LAKES is a folder with a lake per incident, by the name that the document gives it. Of each block that begins with
``$ highwater`` the lines, but ``...``, have to be lines of the output of that command, in that order; ``audit`` is
asked of the lake that it made. Ends with 1 where a line is not there.
"""

from __future__ import annotations

import argparse
import io
import os
import re
import shlex
import sys
import tempfile
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

from highwater.jobs import cli
from tests.bench.answers import WIDTH

DOCUMENT = Path(__file__).parents[2] / "docs" / "incidents.md"
LEFT_OUT = "..."
_BLOCK = re.compile(r"```\n\$ highwater (?P<command>(?:[^\n]*\\\n)*[^\n]*)\n(?P<shown>.*?)```\n", re.DOTALL)
_LINE_END = re.compile(r"\\\n *")
#: The document names files from the corpus on.
_FOLDER = re.compile(r"(?<=\s)/\S*/(?=(?:kip101|slow28)/broker-)")


def main(arguments: list[str]) -> int:
    """Compare, and print what is not there."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("lakes", type=Path)
    parser.add_argument("--only", help="commands with this text")
    given = parser.parse_args(arguments)
    documented = blocks(DOCUMENT.read_text(encoding="utf-8"))
    os.chdir(given.lakes)
    missing = 0
    for command, shown in documented:
        if given.only is not None and given.only not in command:
            continue
        for line in not_there(shown, output(command)):
            print(f"{command}: not printed there: {line}")
            missing += 1
    return int(missing > 0)


def blocks(text: str) -> list[tuple[str, list[str]]]:
    """Commands of a document, each with the lines below it."""
    return [(_LINE_END.sub("", match["command"]), match["shown"].splitlines()) for match in _BLOCK.finditer(text)]


def output(command: str) -> list[str]:
    """Lines that a command prints, cut as in the document."""
    words = shlex.split(command)
    if words[0] == "audit":
        options = [word for word in words if word == "--verbose"]
        words = ["report", "--lake", words[words.index("--lake") + 1], "--out", tempfile.mkdtemp(), *options]
    printed = io.StringIO()
    with redirect_stdout(printed), redirect_stderr(io.StringIO()):
        cli.run(words)
    lines = (_FOLDER.sub("", line).rstrip() for line in printed.getvalue().splitlines())
    return [line if len(line) <= WIDTH else line[: WIDTH - 1] + "…" for line in lines]


def not_there(shown: list[str], printed: list[str]) -> Iterator[str]:
    """Lines that do not come in their order; what follows a line has to follow it at once, but behind ``...``."""
    place, is_next = 0, True
    for line in shown:
        if line == LEFT_OUT:
            is_next = False
            continue
        line_at = next((at for at in range(place, len(printed)) if printed[at] == line), None)
        if line_at is None or (is_next and line_at != place):
            yield line
            continue
        place, is_next = line_at + 1, True


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""The examples of docs/answers.md, asked of `tests/data/lake`: ``python -m tests.bench.answers [--check]``

Each block that begins with ``$ highwater`` has the output of that command put below it; ``--check`` ends with 1 where
the document says otherwise.
"""

from __future__ import annotations

import io
import re
import shlex
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

from highwater.jobs import cli

ROOT = Path(__file__).parents[2]
DOCUMENT = ROOT / "docs" / "answers.md"
LAKE = ROOT / "tests" / "data" / "lake"
#: Columns of a line of the document.
WIDTH = 118

_BLOCK = re.compile(r"```\n\$ highwater (?P<command>[^\n]*)\n.*?```\n", re.DOTALL)


def main(arguments: list[str]) -> int:
    """Write the document anew, or say whether it is as it would be."""
    text = DOCUMENT.read_text(encoding="utf-8")
    written = _BLOCK.sub(lambda match: f"```\n$ highwater {match['command']}\n{output(match['command'])}```\n", text)
    if "--check" in arguments:
        return int(written != text)
    DOCUMENT.write_text(written, encoding="utf-8")
    return 0


def output(command: str) -> str:
    """What a command prints, long lines cut."""
    printed = io.StringIO()
    with redirect_stdout(printed), redirect_stderr(io.StringIO()):
        cli.run([*shlex.split(command), "--lake", str(LAKE)])
    lines = (line.rstrip() for line in printed.getvalue().splitlines())
    return "".join((line if len(line) <= WIDTH else line[: WIDTH - 1] + "…") + "\n" for line in lines)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

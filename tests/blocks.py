"""Blocks of code in README.md and docs/*.md, and which of them a test runs.

A block runs if its language is Python or SQL, or if it shows commands: lines that begin with ``$ highwater``. A block
that cannot run says so in its document, on the line before it: ``<!-- not run: the reason -->``.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).resolve().parents[1]
DOCUMENTS: Final = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
#: Documents whose blocks another test or program runs, and which one.
RUN_ELSEWHERE: Final = {
    "answers.md": "tests/unit/inquiry/test_lake.py",
    "incidents.md": "tests/bench/incidents.py",
    "query_cookbook.md": "tests/spark/audits/test_cookbook.py",
    "sessions.md": "tests/bench/sessions.py",
}
PYTHON, SQL, COMMANDS, OUTPUT = "python", "sql", "commands", "output"
_LANGUAGES: Final = {"python": PYTHON, "sql": SQL, "sh": COMMANDS, "bash": COMMANDS, "text": OUTPUT, "": OUTPUT}
_BLOCK: Final = re.compile(r"(?:^<!-- not run: ([^\n]+) -->\n)?^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_COMMAND: Final = re.compile(r"^\$ (highwater (?:\\\n|[^\n\"#]|\"[^\"]*\")*)", re.MULTILINE)


class Block(NamedTuple):
    """A block of a document."""

    document: str  #: name of the file
    line: int  #: number of its first line, from 1
    kind: str  #: `PYTHON`, `SQL`, `COMMANDS` or `OUTPUT`
    text: str
    reason: str | None  #: why it cannot run; None if it can

    @property
    def commands(self) -> list[list[str]]:
        """Arguments of each ``$ highwater`` in it."""
        return [shlex.split(command.replace("\\\n", " "))[1:] for command in _COMMAND.findall(self.text)]


def blocks(text: str, document: str) -> Iterator[Block]:
    """Yield the blocks of a document.

    Raises:
        KeyError: a block is of an unknown language.
    """
    for match in _BLOCK.finditer(text):
        reason, language, content = match.groups()
        kind = COMMANDS if _COMMAND.search(content) else _LANGUAGES[language]
        yield Block(document, text.count("\n", 0, match.start(3)) + 1, kind, content, reason)


def all_blocks() -> list[Block]:
    """Return the blocks of all documents that show code."""
    found = [block for path in DOCUMENTS for block in blocks(path.read_text(encoding="utf-8"), path.name)]
    return [block for block in found if block.kind != OUTPUT]


def blocks_to_run() -> list[Block]:
    """Return the blocks that no other test runs and that can run."""
    return [block for block in all_blocks() if block.reason is None and block.document not in RUN_ELSEWHERE]

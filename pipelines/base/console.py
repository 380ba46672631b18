"""What the engine tells the user. The engine itself never prints.

Progress goes to stderr, results to stdout, so that a pipe gets results only.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from textwrap import fill
from typing import Final, TextIO

from rich.box import SIMPLE_HEAD
from rich.console import Console as Terminal
from rich.table import Table
from rich.text import Text

from pipelines.base.progress import Plan, shown


class Console:
    """Where stages report to. This one says nothing."""

    def stage(self, name: str) -> AbstractContextManager[None]:
        """A step of the work: tells that it runs and, when it has ended, how long it took."""
        return nullcontext()

    def plan(self, stages: tuple[str, ...], text_bytes: int) -> None:
        """What stages are to come, of how much text: who watches is told the time left."""

    def note(self, text: str) -> None:
        """Something worth knowing, on stderr."""

    def warn(self, text: str) -> None:
        """Something the user should look at, on stderr."""

    def result(self, text: str) -> None:
        """An answer, on stdout, as it is."""

    def prose(self, text: str, hang: int | None = None) -> None:
        """An answer in sentences, on stdout: a terminal has lines that it is too narrow for broken between words.

        Args:
            hang: columns by which the rest of such a line is indented; None: two more than the line itself.
        """
        self.result(text)

    def table(self, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        """An answer in rows, on stdout; numbers are set to the right."""


class _Watched:
    """What a spinner says of a stage, made anew each time that it is drawn."""

    def __init__(self, plan: Plan | None, stage: str) -> None:
        self._plan, self._stage, self._started = plan, stage, time.monotonic()

    def __rich__(self) -> Text:
        return Text(shown(self._plan, self._stage, time.monotonic() - self._started))


class _Stream(Terminal):
    """A stream of this process. Where nobody reads any more, rich itself would end with 1, which means violated."""

    def on_broken_pipe(self) -> None:
        raise  # the BrokenPipeError that rich handles when it calls this


class RichConsole(Console):
    """A terminal, or a file: without colour and in one line per stage where nobody watches."""

    def __init__(self, out: TextIO | None = None, err: TextIO | None = None) -> None:
        # Logs are hostile input: neither markup nor highlighting is read from text.
        stdout = out or sys.stdout
        width = None if stdout.isatty() else _FILE_WIDTH
        self._out = _Stream(file=stdout, width=width, markup=False, highlight=False, soft_wrap=True)
        self._err = _Stream(file=err or sys.stderr, markup=False, highlight=False, soft_wrap=True)
        self._plan: Plan | None = None

    def plan(self, stages: tuple[str, ...], text_bytes: int) -> None:
        self._plan = Plan(stages, text_bytes)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        started = time.monotonic()
        watched = _Watched(self._plan, name)
        spinner = self._err.status(watched) if self._err.is_terminal else nullcontext()
        ending = "  failed"
        try:
            with spinner:
                yield
            ending = ""
            if self._plan is not None:
                self._plan.end(name, time.monotonic() - started)
        finally:
            self._err.print(f"{escaped(name):<32} {time.monotonic() - started:6.1f} s{ending}")

    def note(self, text: str) -> None:
        self._err.print(escaped(text))

    def warn(self, text: str) -> None:
        self._err.print(Text(f"warning: {escaped(text)}", style="yellow"))

    def result(self, text: str) -> None:
        # Not print(), which makes pictures of :words: between colons.
        self._out.out(escaped(text), highlight=False)

    def prose(self, text: str, hang: int | None = None) -> None:
        # What reads a file takes it line by line.
        width = self._out.width if self._out.is_terminal else sys.maxsize
        self.result("\n".join(_broken(line, width, hang) for line in text.split("\n")))

    def table(self, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        grid = Table(box=SIMPLE_HEAD, pad_edge=False)
        for number, column in enumerate(columns):
            numeric = bool(rows) and all(isinstance(row[number], int | float) for row in rows)
            grid.add_column(escaped(column), justify="right" if numeric else "left", no_wrap=numeric, overflow="fold")
        for row in rows:
            shown = map(escaped, map(_shown, row))
            grid.add_row(*(Text(cell if self._out.is_terminal else _folded(cell)) for cell in shown))
        self._out.print(grid, soft_wrap=False)


#: What a terminal obeys, or shows in another order: controls but for tab and line feed, marks of direction, invisible
#: characters, and halves of surrogate pairs.
_UNSAFE: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff"
    "\U000e0000-\U000e007f]"
)


def escaped(text: str) -> str:
    """Return a text without what a terminal obeys, in escapes that JSON has, too: ``\\u001b`` for ESC."""
    return _UNSAFE.sub(lambda match: ascii(match[0])[1:-1] if match[0] > "\uffff" else f"\\u{ord(match[0]):04x}", text)


#: A file has no width to fit into: nothing is cut, names stay whole, and only prose is folded.
_FILE_WIDTH = 1000
_PROSE_WIDTH = 72


#: A command is copied, and stays as it is.
_COMMAND = re.compile(r"(?:^ *|  |\$ )highwater ")


def _broken(line: str, width: int, hang: int | None) -> str:
    """A line over as many as it needs."""
    if len(line) <= width or _COMMAND.search(line):
        return line
    prose = line.lstrip(" ")
    indent = " " * (len(line) - len(prose))
    return fill(
        *(prose, width),
        initial_indent=indent,
        subsequent_indent=f"{indent}  " if hang is None else " " * hang,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _folded(text: str) -> str:
    return fill(text, _PROSE_WIDTH, break_long_words=False, break_on_hyphens=False)


def _shown(cell: object) -> str:
    if cell is None:
        return ""
    return f"{cell:,}" if isinstance(cell, int) and not isinstance(cell, bool) else str(cell)

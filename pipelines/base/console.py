"""Output for the user. The engine itself never prints.

Progress goes to stderr, results to stdout, so that a pipe gets results only.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from textwrap import fill
from typing import Final, TextIO

from rich.console import Console as Terminal
from rich.text import Text

from highwater.pipelines.base.grid import format_grid
from highwater.pipelines.base.zones import Localizer

#: Seconds of each stage on two cores: per run, and per megabyte of text (docs/performance.md, 1 to 866 MB).
_SECONDS: Mapping[str, tuple[float, float]] = {
    "start Spark": (6.0, 0.0),
    "ingest": (0.5, 0.03),
    "parse": (0.5, 0.06),
    "quality": (0.3, 0.004),
    "replay": (2.0, 0.18),
    "report": (0.5, 0.008),
}
#: Estimated rest of an overdue stage, as a share of its time so far.
_OVERDUE = 0.25
#: Bounds of a machine's speed factor. A first stage may seem outside.
_FACTOR_MIN, _FACTOR_MAX = 0.2, 10.0


class Plan:
    """Stages of a run, to estimate the remaining time.

    Args:
        stages: names in order. A stage without a reference duration counts as 0 s.
        text_bytes: approximate size of the new logs.
    """

    def __init__(self, stages: tuple[str, ...], text_bytes: int) -> None:
        self.text_bytes = text_bytes
        self.stages = stages
        self._expected = {
            stage: once + each * text_bytes / 1e6
            for stage in stages
            for once, each in [_SECONDS.get(stage, (0.0, 0.0))]
        }
        self._taken: dict[str, float] = {}

    def end(self, stage: str, seconds: float) -> None:
        """Record that a stage has ended, planned or not."""
        if stage in self._expected:
            self._taken[stage] = seconds

    def position(self, stage: str) -> int | None:
        """Return the number of a stage, from 1. None if it is not planned, or has already run for an earlier batch."""
        return self.stages.index(stage) + 1 if stage in self._expected and stage not in self._taken else None

    def estimate_left_s(self, stage: str, elapsed_s: float) -> float | None:
        """Return the estimated seconds until the last stage ends. None if unknown.

        Args:
            elapsed_s: how long `stage` has been running.
        """
        if self.position(stage) is None:
            return None
        factor = self._estimate_factor()
        later = sum(seconds for name, seconds in self._expected.items() if name != stage and name not in self._taken)
        of_stage = self._expected[stage] * factor - elapsed_s
        return later * factor + (of_stage if of_stage > 0 else _OVERDUE * elapsed_s)

    def _estimate_factor(self) -> float:
        expected = sum(self._expected[stage] for stage in self._taken)
        if not expected:
            return 1.0
        return min(max(sum(self._taken.values()) / expected, _FACTOR_MIN), _FACTOR_MAX)


def format_progress(plan: Plan | None, stage: str, elapsed_s: float) -> str:
    """Return the progress line of a running stage: name, elapsed time, estimated time left."""
    text = f"{stage}  {elapsed_s:.0f} s"
    left = None if plan is None else plan.estimate_left_s(stage, elapsed_s)
    if plan is None or left is None:
        return text
    size = f", {plan.text_bytes / 1e6:,.0f} MB of text" if plan.text_bytes >= 1e6 else ""
    return f"{text}, about {_format_duration(left)} left (step {plan.position(stage)} of {len(plan.stages)}{size})"


def _format_duration(seconds: float) -> str:
    """Return a duration rounded for people."""
    if seconds >= 90:
        return f"{seconds / 60:.0f} min"
    return f"{max(5 * round(seconds / 5), 5)} s"


class Console:
    """Receiver of the messages of stages. This base class ignores them."""

    #: Columns of the terminal. None if stdout is a file.
    width: int | None = None

    def stage(self, name: str) -> AbstractContextManager[None]:
        """Report that a step runs and, after its end, its duration."""
        return nullcontext()

    def plan(self, stages: tuple[str, ...], text_bytes: int) -> None:
        """Show the coming stages and the size of the text, to estimate the remaining time."""

    def note(self, text: str) -> None:
        """Print a note on stderr."""

    def warn(self, text: str) -> None:
        """Print a warning on stderr."""

    def result(self, text: str) -> None:
        """Print an answer on stdout, unchanged."""

    def prose(self, text: str, hang: int | None = None) -> None:
        """Print sentences on stdout. A terminal wraps lines between words.

        Args:
            hang: indentation of continuation lines. None for two columns more than the line itself.
        """
        self.result(text)

    def table(self, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        """Print rows on stdout; numbers are right-aligned. A row wider than the terminal becomes a block."""


class _Watched:
    """Text of a spinner, computed at each refresh."""

    def __init__(self, plan: Plan | None, stage: str) -> None:
        self._plan, self._stage, self._started = plan, stage, time.monotonic()

    def __rich__(self) -> Text:
        return Text(format_progress(self._plan, self._stage, time.monotonic() - self._started))


class _Stream(Terminal):
    """Console on a stream of this process. If its reader is gone, rich would exit with 1, which means violated."""

    def on_broken_pipe(self) -> None:
        raise  # the BrokenPipeError that rich handles when it calls this


class RichConsole(Console):
    """Console on a terminal or a file. A file gets no colour and one line per stage.

    Args:
        localizer: converter of times in prose, notes and tables. None for UTC.
    """

    def __init__(
        self, out: TextIO | None = None, err: TextIO | None = None, localizer: Localizer | None = None
    ) -> None:
        # Logs are hostile input: neither markup nor highlighting is read from text.
        stdout = out or sys.stdout
        self._out = _Stream(file=stdout, markup=False, highlight=False, soft_wrap=True)
        self._err = _Stream(file=err or sys.stderr, markup=False, highlight=False, soft_wrap=True)
        self._localize = (lambda text: text) if localizer is None else localizer.localize
        self._plan: Plan | None = None

    @property
    def width(self) -> int | None:  # type: ignore[override]
        return self._out.width if self._out.is_terminal else None

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
            self._err.print(f"{escape_text(name):<32} {time.monotonic() - started:6.1f} s{ending}")

    def note(self, text: str) -> None:
        self._err.print(escape_text(self._localize(text)))

    def warn(self, text: str) -> None:
        self._err.print(Text(f"warning: {escape_text(text)}", style="yellow"))

    def result(self, text: str) -> None:
        # Not print(), which makes pictures of :words: between colons.
        self._out.out(escape_text(text), highlight=False)

    def prose(self, text: str, hang: int | None = None) -> None:
        # Programs read a file line by line.
        width = self.width or sys.maxsize
        self.result("\n".join(_wrap_line(line, width, hang) for line in self._localize(text).split("\n")))

    def table(self, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        cells = [[self._format_cell(cell) for cell in row] for row in rows]
        right = [all(map(_NUMBER.fullmatch, column)) for column in zip(*cells, strict=True)] or [False] * len(columns)
        self.result(format_grid([*map(escape_text, columns)], cells, right, self.width))

    def _format_cell(self, cell: object) -> str:
        text = escape_text(self._localize(_format_value(cell)))
        return text if self.width else fill(text, _PROSE_WIDTH, break_long_words=False, break_on_hyphens=False)


#: Characters that a terminal obeys or reorders: controls except tab and line feed, marks of direction, invisible
#: characters, and halves of surrogate pairs.
_UNSAFE: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff"
    "\U000e0000-\U000e007f]"
)


def escape_text(text: str) -> str:
    r"""Return a text with terminal control characters as JSON escapes: ``\u001b`` for ESC."""
    return _UNSAFE.sub(lambda match: ascii(match[0])[1:-1] if match[0] > "\uffff" else f"\\u{ord(match[0]):04x}", text)


#: A file has no width to fit into: nothing is cut, names stay whole, and only prose is folded.
_PROSE_WIDTH = 72
#: A cell of a column that is right-aligned.
_NUMBER = re.compile(r"|-|[-+]?[\d.,]+[x%]?")


#: A command line, which is not wrapped so that it can be copied.
_COMMAND = re.compile(r"(?:^ *|  |\$ )highwater ")


def _wrap_line(line: str, width: int, hang: int | None) -> str:
    """Return a line broken into as many lines as needed."""
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


def _format_value(cell: object) -> str:
    if cell is None:
        return ""
    return f"{cell:,}" if isinstance(cell, int) and not isinstance(cell, bool) else str(cell)

"""A console that keeps what it is told."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from highwater.pipelines.base.console import Console


class Said(NamedTuple):
    """One thing that was told to a `CaptureConsole`: kind is stage, note, warn, result or table."""

    kind: str
    text: str


class CaptureConsole(Console):
    """Keeps everything."""

    def __init__(self) -> None:
        self.said: list[Said] = []

    def texts(self, kind: str) -> list[str]:
        """Everything of one kind, in order."""
        return [said.text for said in self.said if said.kind == kind]

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        self.said.append(Said("stage", name))
        yield

    def note(self, text: str) -> None:
        self.said.append(Said("note", text))

    def warn(self, text: str) -> None:
        self.said.append(Said("warn", text))

    def result(self, text: str) -> None:
        self.said.append(Said("result", text))

    def table(self, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        lines = ["\t".join(columns), *("\t".join(_shown(cell) for cell in row) for row in rows)]
        self.said.append(Said("table", "\n".join(lines)))


def _shown(cell: object) -> str:
    if cell is None:
        return ""
    return f"{cell:,}" if isinstance(cell, int) and not isinstance(cell, bool) else str(cell)

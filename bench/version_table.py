"""Puts the table of versions into docs/inputs.md: ``python -m bench.version_table``"""

from __future__ import annotations

import sys
from pathlib import Path

from pipelines.releases import NUMBERINGS

DOCUMENT = Path(__file__).parents[1] / "docs" / "inputs.md"
START, END = "<!-- versions, written by python -m bench.version_table -->\n", "<!-- end of versions -->\n"


def written(text: str) -> str:
    """The document with the table between its marks.

    Raises:
        ValueError: it has no such marks.
    """
    before, _, rest = text.partition(START)
    _, end, after = rest.partition(END)
    if not end:
        raise ValueError(f"{DOCUMENT.name} has no line {START.strip()}, or none that ends it")
    return before + START + _table() + END + after


def _table() -> str:
    rows = ["| logged by | as in | read as | source |", "|---|---|---|---|"]
    for numbering in NUMBERINGS:
        logged, titles = (
            "<br>".join(f"`{text}`" for text in column) for column in zip(*numbering.examples, strict=True)
        )
        rows.append(f"| {numbering.vendor} | {logged} | {titles} | {numbering.source} |")
    return "\n".join(rows) + "\n"


def main() -> int:
    """Write the document anew."""
    DOCUMENT.write_text(written(DOCUMENT.read_text(encoding="utf-8")), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Puts the tables of report.json's fields into docs/report_json.md: ``python -m tests.bench.report_fields``"""

from __future__ import annotations

import sys
from pathlib import Path

from tests.bench.field_docs import markdown

DOCUMENT = Path(__file__).parents[2] / "docs" / "report_json.md"
START = "<!-- fields, written by python -m tests.bench.report_fields -->\n"


def written(text: str) -> str:
    """The document with the tables behind its mark."""
    return text.partition(START)[0] + START + markdown()


def main() -> int:
    """Write the document anew."""
    DOCUMENT.write_text(written(DOCUMENT.read_text(encoding="utf-8")), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Texts of the incidents of logs as people post them: ``python -m bench.wild_incidents LAKES``

LAKES is a folder with a lake per case of ../shared/wild, by the name of the case. Writes a text for each into
tests/data/incidents/wild, which `tests/spark/audits/test_wild_incidents.py` holds audits against: read it aloud beside
the case's expected.md before it is committed.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from bench.faults import Row, incidents_in
from pipelines.incidents.words import at

GOLDEN = Path(__file__).resolve().parent.parent / "tests" / "data" / "incidents" / "wild"


def golden_of(case: str) -> Path:
    """The text of a case, by its number."""
    return GOLDEN / f"{case.partition('-')[0]}.txt"


def text_of(incidents: Sequence[Row]) -> str:
    """Rows of `gold.incidents` as a text, the most harmful first; effects are indented below their cause."""
    return "\n".join((*_lines(incidents), ""))


def _lines(incidents: Sequence[Row]) -> Iterator[str]:
    ids = {row["incident_id"] for row in incidents}
    for row in incidents:
        indent = "    " if row["caused_by"] in ids else ""
        end = "the end of the logs" if row["end_time"] is None else at(row["end_time"])
        yield f"{indent}{row['severity']} {row['kind']}, {at(row['start_time'])} to {end}"
        yield f"{indent}{row['sentence']}"
        if row["known_bug"]:
            yield f"{indent}Known bug {row['known_bug']}, fixed in {row['fixed_in'] or 'no release'}."
        if row["advice"]:
            yield f"{indent}> {row['advice']}"
        yield ""


def main(arguments: list[str]) -> int:
    """Write all texts."""
    GOLDEN.mkdir(parents=True, exist_ok=True)
    for lake in sorted(path for path in Path(arguments[0]).iterdir() if (path / "gold").is_dir()):
        golden_of(lake.name).write_text(text_of(incidents_in(lake)), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Expectations of each table, as the document docs/quality.md. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from highwater.pipelines.quality.expectation import Expectation
from highwater.pipelines.quality.ledger import LEDGERS
from highwater.pipelines.quality.suites import SUITES

_LEDGERS = {
    "ledger.logs": "One row per log file of a batch: what its profile counted, beside what is stored of it.",
    "ledger.data": "One row per file of a data directory.",
    "ledger.kinds": "One row per kind of log in a batch.",
    "ledger.brokers": "One row per broker whose logs are in a batch.",
}


_ABOUT = (
    "# Quality of what was read",
    "Made from the suites themselves by `highwater quality --markdown`; a test compares the two.",
    (
        "Every batch (what one ingest brought in) is asked once, before gold is touched. One Spark query screens all "
        "tables that it brought rows; where some break a critical expectation, Great Expectations looks at them, too. "
        "Results are in `quality.results`."
    ),
    (
        "What a table's declaration says of a single row is not asked again: `NOT NULL` and `CHECK` (docs/tables.md) "
        "are enforced when rows are written, and no row that breaks them gets into the lake. Asked is what they cannot "
        "say: keys, alphabets, columns beside each other, rows one after the other, and whether all is there that was "
        "read."
    ),
    (
        "*Critical* is what can only be so if the data was read wrongly: the files whose rows failed go into "
        "quarantine (`quality.quarantined_files`), and silver loses their rows; bronze keeps them. This audit and "
        "later ones continue without them, name them and are inconclusive. Exit code 2 only if no log is left. "
        "`highwater quality --release FILE_ID|all` has them read and checked again; a new version of highwater does "
        "not release by itself. A *warning* is told, and stops nothing. `[quality.severity]` changes what an "
        "expectation counts as, by its id."
    ),
    "`highwater quality --docs DIR` asks everything of the whole lake and writes Data Docs.",
)


def build_suites_markdown() -> str:
    """Return docs/quality.md: the expectations of each table."""
    sections = [_build_section(table, None, suite) for table, suite in SUITES.items()]
    sections += [_build_section(ledger, _LEDGERS[ledger], suite) for ledger, suite in LEDGERS.items()]
    return "\n\n".join((*_ABOUT, *sections)) + "\n"


def _build_section(name: str, about: str | None, suite: Sequence[Expectation]) -> str:
    rows = [f"| `{item.expectation_id}` | {item.severity} | {item.question} |" for item in suite]
    table = "\n".join(["| expectation | severity | question |", "|---|---|---|", *rows])
    return "\n\n".join(filter(None, (f"## {name}", about, table)))

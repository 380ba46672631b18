"""What became of the lines themselves."""

from __future__ import annotations

from schemas import columns as c
from schemas.bronze import LOG_KINDS
from schemas.silver.source import silver_table
from schemas.table import LONG, STRING, column, required

LINE_COUNTS = silver_table(
    "line_counts",
    "How many records of a file fell to which template, per slice of a file that one task parsed.",
    *c.COUNTED,
    required("template", STRING, "Id of the grammar's template, or the masked text of an unparsed line"),
    required("outcome", STRING, "typed: became rows; known: carries nothing for the audit; unparsed"),
    required("line_count", LONG, "Records"),
    words={"kind": " ".join(LOG_KINDS), "outcome": "typed known unparsed"},
)

UNPARSED_LINES = silver_table(
    "unparsed_lines",
    "A record that no grammar knows, whole.",
    *c.COUNTED,
    required("template", STRING, "Text with numbers, ids and partitions masked: what it is counted by"),
    required(
        "reason",
        STRING,
        "no_grammar, layout, binary, half_line, oversized, continuation; bad_value: of another type or beyond its "
        "column; time_out_of_range: a time far from those around it; doubtful: it may be a text that "
        "a client chose; of request logs bad_json, out_of_range, and in the form of text bad_header, bad_times, "
        "bad_struct, unknown_api",
    ),
    column("problem", STRING, "What the grammar choked on"),
    column("message", STRING, "The record; cut at 4,000 characters"),
    is_traffic=True,
)

"""The report as JSON: the contract's names, keys always in the same order, so that equal reports are equal files."""

from __future__ import annotations

import orjson

from pipelines.report.model import Report


def render_json(report: Report) -> bytes:
    """UTF-8, indented by two, with a newline at the end."""
    return orjson.dumps(report.model_dump(mode="json"), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)

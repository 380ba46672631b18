"""Write the answers into ``docs/query_cookbook.md``, from a lake that holds the bundled slice and nothing else.

    highwater audit tests/data/slice --lake LAKE
    python -m tests.bench.cookbook LAKE

A test holds the document against the answers of Spark and of DuckDB.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pyarrow as pa

from highwater.pipelines.base.answers import format_columns
from highwater.pipelines.base.config import load_config
from highwater.pipelines.lake.views import register, run_query
from highwater.pipelines.spark.session import build_session

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "query_cookbook.md"
EMPTY = "(no rows)"

_QUESTION = re.compile(r"^## (?P<title>.+)$", re.MULTILINE)
_BLOCK = re.compile(r"^```(?P<kind>\w+)\n(?P<text>.*?)^```\n", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Question:
    """One question of the cookbook."""

    title: str
    sql: str
    #: the same with the package ``deltalake``, which leaves a data frame called ``answer``; may be missing
    python: str | None
    answer: str | None  #: what the document says; None where it says nothing yet


def questions(document: str) -> list[Question]:
    """All questions of the document."""
    questions = []
    for part in _parts(document):
        title = _QUESTION.match(part)
        if title is not None:
            blocks = {block["kind"]: block["text"].rstrip("\n") for block in _BLOCK.finditer(part)}
            questions.append(Question(title["title"], blocks["sql"], blocks.get("python"), blocks.get("text")))
    return questions


def _parts(document: str) -> list[str]:
    """The document cut before each question."""
    starts = [0, *(match.start() for match in _QUESTION.finditer(document)), len(document)]
    return [document[start:end] for start, end in pairwise(starts)]


def shown(rows: pa.Table) -> str:
    """An answer as the document shows it."""
    return format_columns(rows) if rows.num_rows else EMPTY


def answered(document: str, answers: Sequence[str]) -> str:
    """The document with these answers, in the order of the questions."""
    remaining = iter(answers)
    return "".join(_with_answer(part, next(remaining)) if _QUESTION.match(part) else part for part in _parts(document))


def _with_answer(part: str, answer: str) -> str:
    blocks = list(_BLOCK.finditer(part))
    old = next((block for block in blocks if block["kind"] == "text"), None)
    if old is not None:
        return f"{part[: old.start()]}```text\n{answer}\n```\n{part[old.end() :]}"
    end = blocks[0].end()
    return f"{part[:end]}\n```text\n{answer}\n```\n{part[end:]}"


def main(arguments: Sequence[str]) -> None:
    """Answer every question on Spark."""
    lake = Path(arguments[0])
    document = DOCUMENT.read_text(encoding="utf-8")
    # Little data: a task costs more than what it does.
    spark = build_session(load_config(None, {"session.shuffle_partitions": 1}), "highwater cookbook")
    try:
        register(spark, lake)
        answers = [run_query(spark, question.sql) for question in questions(document)]
        DOCUMENT.write_text(answered(document, [shown(answer) for answer in answers]), encoding="utf-8")
    finally:
        spark.stop()


if __name__ == "__main__":
    main(sys.argv[1:])

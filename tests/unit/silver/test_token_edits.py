"""Every grammar reads its lines wholly or not at all: real lines of all releases with a token changed.

A token dropped, repeated or respelt gives the same facts, the facts of the changed value in its own column, or none.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest

from highwater.pipelines.grammars import printed, text_log, values
from highwater.pipelines.grammars.record import KNOWN, TYPED, LineFact, LogRecord, Parsed
from highwater.pipelines.grammars.text_log import parse_text
from tests.reading import columns_of
from tests.unit.silver.token_edits import Edit, edits, named_values, wrong

SAMPLE = Path(__file__).parents[2] / "data" / "text_lines.jsonl.gz"
LINES = [orjson.loads(line) for line in gzip.decompress(SAMPLE.read_bytes()).splitlines()]
RECORDS = [LogRecord(**{key: value for key, value in line.items() if key != "version"}) for line in LINES]


@pytest.fixture(autouse=True)
def _no_masks(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is not read need not be masked for counting: most of the time would go there."""
    monkeypatch.setattr(text_log, "mask", lambda message: "")


def _is_another_value(edit: Edit, before: tuple[LineFact, ...], after: Parsed) -> bool:
    """Changes that make another line of Kafka's, whose facts differ in a way that `wrong` does not see."""
    if edit.before in (",", ":") and not edit.after:
        return True  # two names become one: a-0,b-1 is a list, a-0b-1 partition 1 of the topic a-0b
    if edit.before in ("-", ".") and edit.after == edit.before * 2:
        return True  # a topic's name may end with either
    if [(fact.table, columns_of(fact).keys()) for fact in before] != [
        (fact.table, columns_of(fact).keys()) for fact in after.facts
    ]:
        return False
    columns = {name for old, new in zip(before, after.facts, strict=True) for name in _differing(old, new)}
    # The leader's own end offset is that of the replica that the prefix names; -1 is unfenced, 1 fenced.
    allowed = {"event", "detail"} if edit.before == "-" else {"log_end_offset", "replica_end_offsets"}
    return bool(columns) and columns <= allowed


def _differing(old: LineFact, new: LineFact) -> Iterator[str]:
    yield from (name for name, value in columns_of(old).items() if value != columns_of(new)[name])


def problems(record: LogRecord) -> list[str]:
    """What is wrong with the facts of a record's edits."""
    before = parse_text(record).facts
    text, newline, rest = record.message.partition("\n")
    named = list(named_values(text))
    seen = []
    for edit in edits(text):
        after = parse_text(record._replace(message=edit.of(text) + newline + rest))
        problem = wrong(edit, before, after)
        if problem is None and after.facts == before and edit.is_another_number:
            columns = [column for column, start, stop in named if start <= edit.start < stop]
            problem = next(
                (f"{column} not told" for column in columns if columns_of(before[0]).get(column) is not None), None
            )
        if problem is not None and not _is_another_value(edit, before, after):
            seen.append(f"{problem}: {edit.of(text)}")
    return seen


def test_the_sample_has_lines_of_all_eras() -> None:
    versions = {line["version"] for line in LINES if line["version"]}
    assert {version.partition(".")[0] for version in versions} == {"0", "1", "2", "3", "4"}
    assert len(versions) > 15
    assert all(parse_text(record).outcome == TYPED for record in RECORDS)


@pytest.mark.parametrize("part", range(8))
def test_a_changed_token_never_makes_another_fact(part: int) -> None:
    found = [problem for record in RECORDS[part::8] for problem in problems(record)]
    assert not found, "\n".join(found[:10])


def test_a_change_is_unparsed_not_known() -> None:
    """A line that is read no more must lower the coverage; loggers known as a whole are the exception."""
    lost: set[tuple[str, str]] = set()
    for record in RECORDS:
        template = parse_text(record).template
        text, newline, rest = record.message.partition("\n")
        for edit in edits(text):
            after = parse_text(record._replace(message=edit.of(text) + newline + rest))
            if after.outcome == KNOWN and not after.template.startswith("known."):
                lost.add((template, after.template))
    assert lost <= NEIGHBOURS, lost - NEIGHBOURS


#: Typed lines that are one token away from a line that carries nothing.
NEIGHBOURS = {
    ("controller_kraft.unclean_election", "controller_kraft.clean_election"),
}


def test_the_misreading_of_bare_lists_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lists without brackets were once read up to their first comma."""
    bare = [record for record in RECORDS if re.search(r"[( ]PartitionState\(.*isr=\d+,\d", record.message)]
    assert bare
    assert not any(problems(record) for record in bare)
    strict = values.ints
    monkeypatch.setattr("highwater.pipelines.grammars.states.ints", lambda text: strict(text.partition(",")[0]))
    monkeypatch.setattr(printed, "ints", lambda text: strict(text.partition(",")[0]))
    assert all(problems(record) for record in bare)

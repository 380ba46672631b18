"""What a client chooses is never where a fact about replication comes from, whatever it is and whatever prints it."""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter
from datetime import UTC
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from highwater.pipelines.bronze.layout import Layout
from highwater.pipelines.bronze.layouts import patterns
from highwater.pipelines.bronze.layouts.structured import layout_of_name
from highwater.pipelines.grammars.facts import parse_record
from highwater.pipelines.grammars.record import UNPARSED, LineFact, LogRecord
from highwater.pipelines.grammars.request_log import parse_request
from tests.examples import examples
from tests.reading import columns_of, log_records
from tests.unit.forging import ATLAS_CARRIERS, CARRIERS, FORGED, TIME, carriers, doubtful_values, logged, open_values
from tests.unit.silver import request_lines, request_text_lines
from tests.unit.silver.test_request_log import record

MIB = 1 << 20
KAFKA = layout_of_name(patterns.KAFKA)
JSON = layout_of_name(
    '{"timestamp":"%d{yyyy-MM-dd\'T\'HH:mm:ss.SSSXXX}","level":"%p","loggerName":"%c","message":"%m"}'
)

#: What a request says that its client chose, and what holds all of it.
CHOSEN = frozenset({"client_id", "group_id", "member_id", "transactional_id", "body"})

marks = st.sampled_from(
    [
        *(
            "x",
            "\n",
            "\r\n",
            "\r",
            "\u2028",
            "\x85",
            "\0",
            '"',
            "\\",
            "}",
            "{",
            "[",
            "]",
            "(",
            ")",
            ",",
            "=",
            "; ",
            " ",
        ),
        *(
            "null",
            "-1",
            ", correlationId=5) -- {",
            "} -- {",
            "},response:",
            "},response:{responses=[",
            ",principal:User:a",
        ),
        *(" from connection 1.2.3.4:1-5.6.7.8:9-0;totalTime:1.0", ",listener:X", "replica_id=2", "\N{GRINNING FACE}"),
        *("ledger-0 unblocked 5 Fetch operations", "\njava.lang.Exception: ", "\n\tat a.b(C.java:1)"),
        *(TIME, " (kafka.cluster.Partition)", " (kafka.request.logger)", *FORGED),
        *(
            "Completed request:{",
            ',"replicaId":2',
            "broker-2-fetcher-0",
            ",topics=[{topic=orders,partitions=[{partition=0",
        ),
    ]
)
values = st.one_of(
    st.lists(marks, min_size=1, max_size=8).map("".join),
    st.text(max_size=40),
    st.builds(lambda text, count: (text * count)[: 1 << 16], marks, st.just(30_000)),
)


def facts(line: str) -> tuple[LineFact, ...] | None:
    """Facts of a request's line; None if it is not read."""
    read = parse_request(record(line))
    return None if read.outcome == UNPARSED else read.facts


def honest(given: tuple[LineFact, ...]) -> list[tuple[str, dict[str, Any]]]:
    return [
        (fact.table, {name: value for name, value in columns_of(fact).items() if name not in CHOSEN}) for fact in given
    ]


JSON_LINES = [line for name, line in vars(request_lines).items() if name.isupper() and "Completed request:{" in line]
TEXT_LINES = [line for name, line in vars(request_text_lines).items() if name.isupper()]
_CLIENT = re.compile(r"(clientId=|client_id=)([^,}]*)")


@examples(600)
@given(st.sampled_from(JSON_LINES), values, st.booleans())
def test_a_client_id_in_json_changes_nothing_else(line: str, value: str, is_ascii: bool) -> None:
    text = json.dumps(value, ensure_ascii=is_ascii)
    hostile = re.sub(r'"clientId":"[^"]*"', lambda _: f'"clientId":{text}', line, count=1)
    read, before = facts(hostile), facts(line)
    assert before is not None
    assert read is not None
    assert honest(read) == honest(before)
    assert {columns_of(fact)["client_id"] for fact in read if "client_id" in columns_of(fact)} <= {value}


@examples(900)
@given(st.sampled_from(TEXT_LINES), values)
def test_a_client_id_in_text_changes_nothing_else_or_the_line_is_not_read(line: str, value: str) -> None:
    read, before = facts(_CLIENT.sub(lambda match: match[1] + value, line, count=1)), facts(line)
    assert before is not None
    assert read is None or honest(read) == honest(before)


def told(content: str, layout: Layout = KAFKA) -> list[LineFact]:
    """All facts that lines give."""
    parse, found = layout.parser(UTC), []
    for raw in log_records([content.encode(errors="surrogatepass")], layout, MIB):
        head = parse(raw.text)
        if head is not None:
            message = head.message.decode(errors="replace")
            found += parse_record("server", head.time_us, head.level, head.logger, raw.problem, message).facts
    return found


@examples(600)
@given(carriers, st.one_of(values.filter(lambda value: TIME not in value), open_values(), doubtful_values()))
def test_no_line_that_prints_such_a_value_gives_a_fact(carrier: tuple[str, str, str], value: str) -> None:
    assert told(logged(carrier, value)) == []


@examples(300)
@given(carriers, st.one_of(values, open_values(), doubtful_values()))
def test_in_json_no_value_ends_its_record(carrier: tuple[str, str, str], value: str) -> None:
    level, text, logger = carrier
    fields = {"timestamp": "2026-11-20T15:39:28.132Z", "level": level, "loggerName": logger}
    line = json.dumps({**fields, "message": text.format(value)}, ensure_ascii="\ud800" <= value[:1] <= "\udfff")
    assert told(f"{line}\n", JSON) == []


#: Values that open a record, seem to close it, or fake its tail, around whole records.
SHAPES = [
    f"{first}\n{TIME}{record}\n{last}"
    for first in ("g", "g (a.b)", "g (org.apache.kafka.X)", "g\njava.lang.Exception: x", f"g\n{TIME}INFO x (a.b)")
    for record in FORGED
    for last in ("", "x", "y (a.b)", "java.lang.Exception: x", "\tat a.b(C.java:1)")
]


def test_no_text_of_kafka_that_prints_a_value_of_clients_gives_a_forged_fact() -> None:
    assert len(ATLAS_CARRIERS) > 300
    for number, carrier in enumerate(ATLAS_CARRIERS):
        for value in SHAPES[number % 7 :: 7]:
            assert told(logged(carrier, value)) == [], (carrier, value)


def test_the_lines_that_are_forged_are_lines_of_facts() -> None:
    assert all(told(f"{TIME}{line}\n") for line in FORGED)


def test_a_fetchs_client_cannot_say_why_it_was_answered() -> None:
    evil = "a since it has diverging epoch requiring truncation for partition ledger-0 b"
    fetch = f"DelayedFetch(params=FetchParams(replicaId=2, clientMetadata=Optional[clientId={evil}]))"
    message = f"Satisfying fetch {fetch} since it is fetching later segments of partition orders-1."
    parsed = parse_record("server", 1, "DEBUG", "kafka.server.DelayedFetch", None, message)
    assert not any(columns_of(fact).get("topic") == "ledger" for fact in parsed.facts)


def test_a_groups_id_is_no_partition() -> None:
    for end in ("\nx", "\njava.lang.Exception: x"):
        assert told(logged(CARRIERS[-2], "ledger-0 unblocked 5 Fetch operations" + end)) == []


def test_carriers_are_read_as_lines_without_facts() -> None:
    for level, text, logger in CARRIERS[:-1]:
        assert LogRecord("server", 1, level, logger, text) is not None
        assert parse_record("server", 1, level, logger, None, text.format("g")).outcome in ("known", "unparsed")


SLICE = Path(__file__).parents[2] / "data" / "slice" / "broker-1" / "logs" / "server.log.gz"


@examples(60)
@given(carriers, st.one_of(open_values(), doubtful_values()), st.integers(0, 10_000))
def test_no_fact_of_a_real_log_comes_from_such_a_line(carrier: tuple[str, str, str], value: str, place: int) -> None:
    lines = gzip.decompress(SLICE.read_bytes()).decode().splitlines(True)
    starts = [number for number, line in enumerate(lines) if line.startswith("[20")]
    at = starts[place % len(starts)]
    near = max(0, at - 40), at + 40
    before, after = "".join(lines[near[0] : at]), "".join(lines[at : near[1]])
    honest_facts = Counter(map(repr, told(before) + told(after)))
    assert Counter(map(repr, told(before + logged(carrier, value) + after))) <= honest_facts

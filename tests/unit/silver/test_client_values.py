"""Values that clients choose: which records can hold one, and what a record says that has one."""

from __future__ import annotations

import gzip
import json
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from highwater.pipelines.bronze.identity import cluster_in
from highwater.pipelines.bronze.layout import Layout
from highwater.pipelines.grammars.client_values import can_hold_client_value
from highwater.pipelines.grammars.facts import parse_record
from highwater.pipelines.grammars.request_log import parse_request
from highwater.pipelines.grammars.templates import TEMPLATES
from highwater.pipelines.kafka.raw_record import DOUBTFUL
from tests.examples import examples
from tests.reading import columns_of, log_records
from tests.unit.forging import ATLAS_CARRIERS, CARRIERS, FORGED, TIME, logged
from tests.unit.silver import request_lines
from tests.unit.silver.test_hostile_texts import JSON, KAFKA, MIB
from tests.unit.silver.test_request_log import record
from tests.verbs import CORPORA, SLICE

LOUD = CORPORA.parent / "reference" / "log-templates" / "loud.jsonl.gz"
#: Arguments of Kafka's logging calls, as its source names them, that hold what a client chose.
CHOSEN_ARGUMENT = re.compile(
    r"(?i)groupid|group$|memberid|member$|instanceid|transactionalid|principal|clientid|username|\.owner|entityname"
    r"|userinfo|quotaentity|configprops|tokenid"
)
CLUSTER = "A" * 22
#: First lines of values that imitate the rest of some other text.
IMITATIONS = (
    "g",
    "orders-0",
    "orders-0 unblocked 1 Fetch operations",
    "g since delete topic is disabled (kafka.controller.TopicDeletionManager)",
    "g (org.apache.kafka.storage.internals.log.UnifiedLog)",
)


def arguments() -> Iterator[tuple[str, str]]:
    """Yield the constant text before each argument that a client chose, of 29 releases, and the class."""
    with gzip.open(LOUD, "rt") as lines:
        for line in lines:
            row = json.loads(line)
            given = row.get("args")
            names = next(iter(given)).split(", ") if isinstance(given, dict) else given or []
            places = re.finditer(r"\{\}", row["template"])
            for place, name in zip(places, names, strict=False):
                if CHOSEN_ARGUMENT.search(str(name)):
                    yield row["template"][: place.start()].replace("{}", "1"), row["class"]


@pytest.mark.skipif(not LOUD.exists(), reason="the texts of all releases are not beside this checkout")
def test_what_clients_choose_is_known_in_all_releases() -> None:
    found = set(arguments())
    assert len(found) > 200
    assert [(text, name) for text, name in found if not can_hold_client_value(text + "g")] == []


@pytest.mark.parametrize("value", IMITATIONS)
def test_no_value_makes_its_record_one_without_values(value: str) -> None:
    for _, text, _ in ATLAS_CARRIERS:
        before = text.partition("{}")[0].replace("{{", "{").replace("}}", "}")
        assert can_hold_client_value(before + value), before


#: Lines of Kafka's replication.
OWN = (
    "[Partition orders-0 broker=1] orders-0 starts at leader epoch 3 from offset 5 with high watermark 4. Previous "
    "leader epoch was 2.",
    "[Partition orders-0 broker=1] Shrinking ISR from 1,2 to 1. Leader: (highWatermark: 5, endOffset: 9).",
    "[Log partition=orders-0, dir=/d] Loading producer state till offset 0 with message format version 2",
    "[ReplicaFetcher replicaId=2, leaderId=1, fetcherId=0] Truncating partition orders-0 to local high watermark 0",
    "Kafka version: 3.9.1",
    "Cluster ID = WCK8FkK8RbKFhwge5X0aNA",
    "[KafkaServer id=1] started",
    "Log for partition orders-0 is renamed to /d/orders-0.1-delete and is scheduled for deletion",
)


@pytest.mark.parametrize("line", OWN)
def test_a_line_that_a_process_cut_as_it_died_holds_no_value(line: str) -> None:
    """A cut within a value, or a text that some releases do not have, leaves lines that are not known."""
    assert not can_hold_client_value(line)
    known = [end for end in range(len(line)) if not can_hold_client_value(line[:end])]
    assert len(known) > len(line) / 2


def told(line: str) -> list[Any]:
    parse, found = JSON.parser(UTC), []
    for raw in log_records([line.encode()], JSON, MIB):
        head = parse(raw.text)
        assert head is not None
        assert cluster_in(head.message) is None
        message = head.message.decode(errors="replace")
        found += parse_record("server", head.time_us, head.level, head.logger, raw.problem, message).facts
    return found


def test_no_text_in_json_that_prints_a_value_of_clients_gives_a_fact() -> None:
    """All texts of the atlas, each with a whole record, the end of another, or a cluster in the value."""
    values = [f"g (a.b)\n{TIME}{forged}\ny" for forged in FORGED] + [
        f"g\nCluster ID = {CLUSTER}",
        f"clusterId={CLUSTER}",
    ]
    for number, (level, text, logger) in enumerate(ATLAS_CARRIERS):
        message = text.format(values[number % len(values)])
        fields = {"timestamp": "2026-11-20T15:39:28.132Z", "level": level, "loggerName": logger, "message": message}
        assert told(json.dumps(fields) + "\n") == [], message


def texts_of(node: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the paths of all texts in a document."""
    if isinstance(node, str):
        yield path
    for key, value in node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ():
        yield from texts_of(value, (*path, key))


#: JSON of requests, by every text in it: client, software, group, member, transaction, rack, topic, principal, host.
DOCUMENTS = [
    json.loads(line.partition("Completed request:")[2].rpartition("}")[0] + "}")
    for name, line in vars(request_lines).items()
    if name.isupper() and "Completed request:{" in line
]
PLACES = [(number, path) for number, document in enumerate(DOCUMENTS) for path in texts_of(document)]
FORGED_TEXTS = (
    f'x","clusterId":"{CLUSTER}","topic":"forged","partition":0,"y":"',
    f"x\n{TIME}{FORGED[0].replace('orders', 'forged')}\ny (kafka.request.logger)",
    f"Cluster ID = {CLUSTER}",
    "forged-0 unblocked 1 Fetch operations",
)


@examples(400)
@given(st.sampled_from(PLACES), st.sampled_from(FORGED_TEXTS))
def test_no_text_of_a_request_names_a_cluster_or_a_partition(place: tuple[int, tuple[Any, ...]], value: str) -> None:
    number, (*path, last) = place
    document = json.loads(json.dumps(DOCUMENTS[number]))
    node = document
    for key in path:
        node = node[key]
    node[last] = value
    line = f"{TIME}DEBUG Completed request:{json.dumps(document)} (kafka.request.logger)"
    message = line.partition(" DEBUG ")[2]
    assert cluster_in(message.encode()) is None or last == "clusterId"
    named = [columns_of(fact).get("topic") for fact in parse_request(record(line)).facts]
    assert "forged" not in named


def test_templates_declare_values_of_clients() -> None:
    assert sum("(?#client)" in template.pattern for template in TEMPLATES) > 20
    assert KAFKA.tail is not None


LOGS = sorted(CORPORA.glob("*/broker-*/logs/server.log*")) or [SLICE / "broker-1" / "logs" / "server.log.gz"]
#: Bytes of a log around the line with the value.
AROUND_BYTES = 30_000


def window_of(log: Path, random: Random) -> tuple[str, str]:
    """Return the lines of a log before and after a random place."""
    stored = log.read_bytes()
    text = (gzip.decompress(stored) if log.suffix == ".gz" else stored).decode(errors="replace")
    starts = [match.start() + 1 for match in re.finditer(r"\n(?=\[20)", text)]
    at = random.choice(starts)
    first, last = (starts[bisect_left(starts, at - AROUND_BYTES)], starts[bisect_left(starts, at + AROUND_BYTES) - 1])
    return text[first:at], text[at:last]


def value_of(random: Random) -> str:
    """Return a value of one to four parts: ends of its record, whole records, and beginnings of others."""
    ends = ["g", "g (a.b)", "g (kafka.server.KafkaApis)", "g\njava.lang.Exception: x", f"g\n{TIME}INFO z"]
    parts = [random.choice(ends), *(TIME + forged for forged in random.choices(FORGED, k=random.randint(1, 2)))]
    if random.random() < 0.5:
        parts += [logged(random.choice(CARRIERS), "h").removesuffix("\n"), TIME + random.choice(FORGED)]
    return "\n".join([*parts, random.choice(["", "y", "y (a.b)", "java.lang.Exception: y", "\tat a.b(C.java:1)"])])


def facts_of(text: str, layout: Layout) -> tuple[Counter[str], bool]:
    """Return the facts that lines give, and whether a record is doubtful."""
    parse, found, is_doubted = layout.parser(UTC), Counter[str](), False
    for raw in log_records([text.encode(errors="surrogatepass")], layout, MIB):
        head = parse(raw.text)
        is_doubted |= raw.problem == DOUBTFUL
        if head is not None:
            message = head.message.decode(errors="replace")
            read = parse_record("server", head.time_us, head.level, head.logger, raw.problem, message)
            found += Counter(map(repr, read.facts))
    return found, is_doubted


def as_json(text: str) -> str:
    """Return lines as a JSON layout prints them."""
    parse, lines = KAFKA.parser(UTC), []
    for raw in log_records([text.encode()], KAFKA, MIB):
        head = parse(raw.text)
        assert head is not None
        time = datetime.fromtimestamp(head.time_us / 1e6, UTC).isoformat(timespec="milliseconds")
        fields = {"timestamp": time.replace("+00:00", "Z"), "level": head.level, "loggerName": head.logger}
        lines.append(json.dumps({**fields, "message": head.message.decode(errors="replace")}))
    return "".join(f"{line}\n" for line in lines)


@pytest.mark.parametrize("seed", range(60))
def test_a_value_makes_no_fact_and_costs_none_without_a_hole(seed: int) -> None:
    """In the logs of all corpora: what it costs is doubtful, which is a hole in the log, and no verdict is clean."""
    random = Random(seed)
    before, after = window_of(LOGS[seed % len(LOGS)], random)
    carrier = random.choice((*CARRIERS, *ATLAS_CARRIERS))
    value = value_of(random)
    honest = facts_of(before, KAFKA)[0] + facts_of(after, KAFKA)[0]
    found, is_doubted = facts_of(before + logged(carrier, value) + after, KAFKA)
    assert found <= honest
    assert is_doubted or found == honest
    level, text, logger = carrier
    fields = {"timestamp": "2026-11-20T15:39:28.132Z", "level": level, "loggerName": logger}
    line = json.dumps({**fields, "message": text.format(value)}) + "\n"
    whole, _ = facts_of(as_json(before) + as_json(after), JSON)
    assert facts_of(as_json(before) + line + as_json(after), JSON) == (whole, False)
    assert sum(whole.values()) == sum(honest.values())

"""Values that clients choose: which records can hold one, and what a record says that has one."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator
from datetime import UTC
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from highwater.pipelines.bronze.identity import cluster_in, kind_of_logger
from highwater.pipelines.cluster.premises import CLIENT_FREE
from highwater.pipelines.grammars.client_values import can_hold_client_value
from highwater.pipelines.grammars.facts import parse_record
from highwater.pipelines.grammars.request_log import parse_request
from highwater.pipelines.grammars.templates import TEMPLATES
from tests.examples import examples
from tests.generators.client_values import make_case
from tests.reading import columns_of, log_records
from tests.unit.forging import ATLAS_CARRIERS, FORGED, TIME
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


@pytest.mark.skipif(not LOUD.exists(), reason="the texts of all releases are not beside this checkout")
def test_no_logger_of_a_client_free_file_prints_what_a_client_chose() -> None:
    with gzip.open(LOUD, "rt") as lines:
        rows = [json.loads(line) for line in lines]
    printed: dict[str, set[str]] = {}
    for row in rows:
        given = row.get("args")
        names = next(iter(given)) if isinstance(given, dict) else str(given)
        loggers = [row[name] for name in ("full", "logger") if row.get(name)]
        for logger in (one for some in loggers for one in ([some] if isinstance(some, str) else some)):
            printed.setdefault(kind_of_logger(logger), set()).update(CHOSEN_ARGUMENT.findall(names))
    assert printed["server"]
    assert {kind for kind in CLIENT_FREE if printed.get(kind)} == set()
    assert not {logger for _, _, logger in ATLAS_CARRIERS if kind_of_logger(logger) in CLIENT_FREE}


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


@pytest.mark.parametrize("seed", range(60))
def test_a_value_makes_no_fact_and_costs_none_without_a_hole(seed: int) -> None:
    """In the logs of all corpora: what it costs is doubtful, which is a hole in the log, and no verdict is clean."""
    case = make_case(LOGS[seed % len(LOGS)], Random(seed))
    assert case.adds_no_fact
    assert case.is_doubted or case.costs_no_fact
    assert case.is_text_in_json

"""What clients were shown past its limit, from fetch requests in whatever files."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from highwater.pipelines.rules.facts.columns import KEY, ORDER
from highwater.pipelines.rules.facts.reads import SUSPECT, reads, suspects
from highwater.pipelines.rules.facts.selection import selected
from highwater.schemas import silver
from tests.unit.rules.test_facts_of_tables import batch, fact_of

NAMES = {("c", "x"): "named"}
Row = dict[str, Any]


def request(random: Random, correlation_id: int) -> Row:
    def place() -> Row:
        topic = random.choice(("t", "t", None))
        return {"topic": topic, "topic_id": None if topic else random.choice("xy"), "partition": random.randrange(2)}

    asked = [
        place()
        | {"fetch_offset": random.randrange(5), "current_leader_epoch": random.choice((None, -1, 1, 1, 1, 1, 2))}
        for _ in range(random.randrange(4))
    ]
    answers = [
        place()
        | {"error_code": random.choice((None, 0, 0, 3)), "size_bytes": random.choice((None, 0, 0, 9))}
        | {"high_watermark": random.randrange(-1, 6), "last_stable_offset": random.choice((None, 2, 3))}
        for _ in range(random.randrange(5))
    ]
    return {
        "replica_id": random.choice((-1, -1, -1, -1, 2)),
        "broker_id": random.choice((1, 1, 1, 1, None)),
        "connection": random.choice("vw"),
        "correlation_id": correlation_id,
        "time": correlation_id * 10 if random.random() < 0.9 else random.randrange(2_000),
        "isolation_level": random.choice((None, 0, 1)),
        # A partition is asked for once.
        "partitions": list({(part["topic"] or part["topic_id"], part["partition"]): part for part in asked}.values()),
        "responses": answers,
    }


def topic_of(part: Row) -> str:
    return part["topic"] or {"x": "named"}.get(part["topic_id"], f"id:{part['topic_id']}")


def asked_of(requests: list[Row]) -> list[Row]:
    """What clients asked for, with the first answer to it."""
    rows = []
    for each in requests:
        if each["replica_id"] >= 0 or each["broker_id"] is None:
            continue
        for asked in each["partitions"]:
            same = [
                answer
                for answer in each["responses"]
                if (topic_of(answer), answer["partition"]) == (topic_of(asked), asked["partition"])
                and not answer["error_code"]
            ]
            answer = same[0] if same else {"high_watermark": None, "last_stable_offset": None, "size_bytes": None}
            committed = each["isolation_level"] == 1
            rows.append(
                {**each, **asked, **answer, "limit": answer["last_stable_offset" if committed else "high_watermark"]}
            )
            rows[-1] |= {"topic": topic_of(asked), "topic_id": asked["topic_id"], "committed": committed}
    return rows


def oracle(requests: list[Row]) -> set[tuple[object, ...]]:
    """Each read past its limit, with the limit of the answer that follows; all are compared with all."""
    rows, expected = asked_of(requests), set()
    for row in rows:
        limit, size = row["limit"], row["size_bytes"]
        if limit is None or limit < 0 or row["fetch_offset"] < limit or not size:
            continue
        chain = [
            other
            for other in rows
            if all(other[name] == row[name] for name in ("connection", "topic", "topic_id", "partition"))
            and other["correlation_id"] > row["correlation_id"]
        ]
        after = min(chain, key=lambda other: other["correlation_id"], default=None)
        epoch = row["current_leader_epoch"]
        follows = (
            after and (epoch or -1) >= 0 and after["current_leader_epoch"] == epoch and after["time"] >= row["time"]
        )
        place = (row["topic"], row["partition"], row["connection"], row["correlation_id"], row["time"])
        isolation = "read_committed" if row["committed"] else "read_uncommitted"
        answered = (row["high_watermark"], row["last_stable_offset"], size)
        expected.add(
            (*place, isolation, row["fetch_offset"], epoch, *answered, after["limit"] if after and follows else None)
        )
    return expected


def told(files: list[list[Row]]) -> list[tuple[object, ...]]:
    """The same of files of requests."""
    batches = [batch(silver.FETCH_REQUESTS, *file) for file in files]
    connections = {name for rows in batches for name in suspects(rows).column(SUSPECT).to_pylist()}
    rows = [row for rows in batches for row in reads(rows, list(connections), NAMES).to_pylist()]
    rows.sort(key=lambda row: [(row[name] is not None, row[name]) for name in (*KEY, *ORDER)])
    made = []
    for place in sorted({(row["topic"], row["partition"]) for row in rows}):
        here = [row for row in rows if (row["topic"], row["partition"]) == place]
        for fact in selected(map(fact_of, here)):
            line = (fact.connection, fact.correlation_id, fact.time_us, fact.name, fact.offset, fact.leader_epoch)
            made.append((*place, *line, fact.high_watermark, fact.end_offset, fact.size_bytes, fact.previous))
    return made


@pytest.mark.parametrize("seed", range(40))
def test_reads_past_their_limit(seed: int):
    random = Random(seed)
    requests = [request(random, number) for number in range(200)]
    expected, made = oracle(requests), told([requests])
    assert len(made) == len(expected)
    assert set(made) == expected


@pytest.mark.parametrize("seed", range(40))
def test_files_may_share_a_connection_in_any_way(seed: int):
    random = Random(seed)
    requests = [request(random, number) | {"time": number * 10} for number in range(200)]
    files: list[list[Row]] = [[], [], []]
    for each in requests:
        for file in random.sample(files, random.choice((1, 1, 1, 2))):
            file.append(each)
    assert set(told([file for file in files if file])) == oracle(requests)


def test_connections_without_a_read_past_its_limit_give_no_facts():
    answer = {"topic": "t", "partition": 0, "high_watermark": 5, "size_bytes": 7}
    asked = {"topic": "t", "partition": 0, "fetch_offset": 4}
    common = {"replica_id": -1, "isolation_level": 0, "partitions": [asked], "responses": [answer]}
    past = common | {"connection": "v", "partitions": [asked | {"fetch_offset": 5}]}
    rows = batch(silver.FETCH_REQUESTS, common | {"connection": "w"}, past, past, common | {"connection": None})
    assert suspects(rows).column(SUSPECT).to_pylist() == ["c|1|v"]
    assert reads(rows, ["c|1|v"], {}).column("connection").to_pylist() == ["v", "v"]
    assert len(reads(rows, ["c|1|"], {})) == 1

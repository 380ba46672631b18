"""Numbers that producers' requests leave out."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import duckdb
import pyarrow as pa
import pytest

from highwater.pipelines.rules.holes import NumberGap, holes_of_numbers
from highwater.pipelines.rules.holes_stage import SQL
from highwater.schemas import silver
from tests.unit.tables import table_rows

BEGIN = datetime(2026, 11, 20, tzinfo=UTC)


class Sent(NamedTuple):
    """A request that is logged."""

    second: int
    broker_id: int
    connection: str
    number: int
    table: str = silver.PRODUCE_REQUESTS.name
    client_id: str = "p"


def missing(sent: Iterable[Sent], parts: int = 1) -> dict[int, int | None]:
    """Return the number of lines that each broker's request log lacks, searched in parts of the clients."""
    lines = list(sent)
    with duckdb.connect() as connection:
        for spec in (silver.PRODUCE_REQUESTS, silver.REQUESTS, silver.FETCH_REQUESTS):
            rows = [
                {
                    "cluster_id": "c",
                    "broker_id": one.broker_id,
                    "client_id": one.client_id,
                    "connection": one.connection,
                    "correlation_id": one.number,
                    "time": BEGIN + timedelta(seconds=one.second),
                }
                for one in lines
                if one.table == spec.name
            ]
            connection.register(spec.full_name.replace(".", "_"), pa.Table.from_batches([table_rows(spec, rows)]))
        query = SQL["number_gaps"]
        asked = [connection.sql(query, params={"part": part, "parts": parts}) for part in range(parts)]
        gaps = [NumberGap(**row) for rows in asked for row in rows.to_arrow_table().to_pylist()]
    return {hole.broker_id or 0: hole.records for hole in holes_of_numbers(gaps)}


#: A connection to each of two brokers, with numbers of its own.
APART = [Sent(second, broker, f"to {broker}", second + 300 * broker) for second in range(100) for broker in (1, 2)]
#: A client that numbers the requests of both connections together.
TOGETHER = [Sent(second, 1 + second % 2, f"to {1 + second % 2}", second) for second in range(100)]


@pytest.mark.parametrize("sent", [APART, TOGETHER], ids=["apart", "together"])
def test_whole_logs_leave_out_no_number(sent: list[Sent]) -> None:
    assert missing(sent) == {}
    # Logs begin and end at any number, and a line may be in two files.
    assert missing([one for one in sent if 20 < one.second < 80] + sent[50:60]) == {}


def test_lost_lines_of_one_broker_are_missing() -> None:
    assert missing([one for one in APART if one.broker_id == 1 or one.second % 5]) == {2: 19}
    assert missing([one for one in APART if one.broker_id == 1 or not 40 <= one.second < 60]) == {2: 20}


def test_lost_lines_of_all_connections_are_missing() -> None:
    found = missing([one for one in TOGETHER if not 40 <= one.second < 70])
    assert found.keys() == {1, 2}


def test_requests_of_all_apis_are_numbered() -> None:
    for spec in (silver.REQUESTS, silver.FETCH_REQUESTS):
        assert missing([one._replace(table=spec.name) if one.second % 3 == 0 else one for one in APART]) == {}


def test_a_few_numbers_are_of_requests_without_an_answer() -> None:
    assert missing([one for one in APART if one.second not in range(40, 45)]) == {}


def test_a_client_that_produces_nothing_may_leave_out_numbers() -> None:
    fetches = [one._replace(table=silver.FETCH_REQUESTS.name) for one in APART if one.second % 5]
    assert missing(fetches) == {}


@pytest.mark.parametrize("parts", [2, 7])
def test_parts_of_the_clients_find_the_same(parts: int) -> None:
    sent = [
        one._replace(client_id=f"p{client}", connection=f"{client} {one.connection}")
        for client in range(5)
        for one in APART
        if one.broker_id == 1 or one.second % (5 + client)
    ]
    assert missing(sent, parts) == missing(sent) == {2: 71}

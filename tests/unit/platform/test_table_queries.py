"""Queries over tables of the driver."""

from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa

from highwater.pipelines.lake.table_queries import answer


def test_a_query_sees_its_own_tables_and_no_others() -> None:
    def total(number: int) -> int:
        rows = pa.table({"value": [number] * 1000})
        return int(answer("SELECT sum(value) AS total FROM given", given=rows)["total"][0].as_py())

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(total, range(100))) == [1000 * number for number in range(100)]
    assert answer("SELECT count(*) AS n FROM duckdb_views() WHERE NOT internal")["n"].to_pylist() == [0]


def test_hours_are_those_of_the_logs() -> None:
    assert answer("SELECT current_setting('TimeZone') AS zone")["zone"].to_pylist() == ["UTC"]

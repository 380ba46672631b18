"""docs/tables.md, made from the declarations. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pyspark.sql.types import ArrayType, DataType, StructField, StructType

from schemas.table import TableSpec
from schemas.views import ViewSpec

_LAYERS = {
    "bronze": "What was read, addressable to the byte.",
    "silver": "One table per kind of fact, typed; each row names the line that it comes from.",
    "quality": "What was asked of the data as it was read, and which files are kept out of it.",
    "gold": "The answers. Rows hold no file ids and no offsets in files, `gold.evidence` apart.",
    "state": "State that an incremental run resumes from. Not for analysis: its columns may change with any version.",
}

_INTRODUCTION = """\
# Tables

Made from the declarations in `schemas/tables/` by `highwater tables --markdown`; a test compares the two.

A lake is a folder of Delta tables, one per `<layer>/<table>`. All times are UTC. `highwater tables` lists what a lake
holds, `highwater tables NAME` the columns of one table, `highwater sql` answers queries over them, and
[query_cookbook.md](query_cookbook.md) has questions with their SQL.

## Reading them

In SQL a table is called `<layer>_<table>`, as `gold_violations`. In Spark:

```python
import highwater

spark = highwater.spark("highwater-lake")
spark.sql("select * from lost_ranges").show()
```

A session of your own, and the interface without Spark: [python.md](python.md). Without Spark, `highwater sql
"select * from lost_ranges" --format csv` (or `json`, `parquet`), and with `pip install deltalake` alone, for pandas;
`ArrowDtype` keeps whole numbers whole where some are null:

```python
import pandas as pd
from deltalake import DeltaTable

rows = DeltaTable("highwater-lake/gold/violations").to_pyarrow_table()
violations = rows.to_pandas(types_mapper=pd.ArrowDtype)
```

In polars: `polars.read_delta("highwater-lake/gold/violations")`, or `polars.from_arrow(rows)` of the rows above.

In DuckDB: `highwater sql --duckdb-views > views.sql`, then `duckdb -init views.sql`. That downloads DuckDB's extension
`delta` once. Where it cannot be had, the tables are registered from Python, and the views come on top:

```python
import subprocess
from pathlib import Path

import duckdb
from deltalake import DeltaTable

con = duckdb.connect()
for log in Path("highwater-lake").glob("*/*/_delta_log"):
    table = log.parent
    con.register(f"{table.parent.name}_{table.name}", DeltaTable(table).to_pyarrow_dataset())
con.execute(subprocess.check_output(["highwater", "sql", "--duckdb-views", "--registered"], text=True))
con.sql("select * from lost_ranges").show()
```

Any reader of Delta's oldest protocol (reader version 1) can read the tables: there are no deletion vectors, no column
mapping, and no times without a zone. Writers need version 4 (CHECK constraints, change data feed); nothing
but `highwater` should write to a lake.

## What changed since

Some gold tables keep Delta's change data feed, which has the rows that an audit inserted, updated or deleted:
{feeds}.

It has the columns of the table, `_change_type`, `_commit_version` and `_commit_timestamp`. A consumer remembers the
last version that it has read. `update_preimage` rows are what an update replaced. `OPTIMIZE`, and so `highwater
maintain`, adds no rows to it. The other gold tables have none: each run writes rows of them again that are what they
were. Where a run rebuilds gold, after new grammars for instance, and old and new rows take more than 64 MB as stored,
all rows of a table are deleted and inserted in its feed.

```python
feed = spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", 1)
changes = feed.load("highwater-lake/gold/violations")
```

```python
from deltalake import DeltaTable

violations = DeltaTable("highwater-lake/gold/violations")
columns = ["finding_id", "rule_id", "severity", "message", "_change_type", "_commit_version"]
changes = violations.load_cdf(starting_version=1, columns=columns).read_all()
```

Columns are named there because `deltalake` 1.6 cannot read lists (`brokers`) in a feed; in a table it can.

## Upkeep

`highwater maintain` compacts tables of many small files and removes files that only versions older than
`--retention-hours` (168) need, so time travel and the change data feed reach back that far for sure. It drops no
rows: what gold says is computed from all of silver, and a file that bronze no longer knew would be read again. Where a
lake grows too large, begin a new one, say per month.
"""


def tables_markdown(tables: Sequence[TableSpec], views: Sequence[ViewSpec]) -> str:
    """All tables and views as the document docs/tables.md."""
    return "\n".join(_document(tables, views)) + "\n"


def _document(tables: Sequence[TableSpec], views: Sequence[ViewSpec]) -> Iterator[str]:
    feeds = _names([table.full_name for table in tables if table.feeds_changes])
    yield _INTRODUCTION.replace("{feeds}", feeds)
    yield "## All tables"
    for layer in dict.fromkeys(table.layer for table in tables):
        yield ""
        yield f"**{layer}.** {_LAYERS.get(layer, '')}".rstrip()
        yield ""
        yield "| table | what |"
        yield "|---|---|"
        for table in tables:
            if table.layer == layer:
                yield f"| [{table.full_name}](#{_anchor(table.full_name)}) | {_cell(table.comment)} |"
    yield ""
    yield "**Views.** Made by `highwater sql`, not stored; for Spark and DuckDB alike."
    yield ""
    yield "| view | what |"
    yield "|---|---|"
    for view in views:
        yield f"| [{view.name}](#{_anchor(view.name)}) | {_cell(view.comment)} |"
    for table in tables:
        yield ""
        yield from _table(table)
    for view in views:
        yield ""
        yield f"## {view.name}"
        yield ""
        yield f"{view.comment} A view of {', '.join(f'`{name}`' for name in view.reads)}."
        yield ""
        yield "```sql"
        yield view.sql.strip()
        yield "```"


def _table(table: TableSpec) -> Iterator[str]:
    yield f"## {table.full_name}"
    yield ""
    yield table.comment
    yield ""
    yield f"- key: {_names(table.keys)}"
    if table.ordered_by:
        yield f"- written in the order of: `{table.ordered_by}`"
    if table.dated_by:
        yield f"- old days can be dropped, by: {_names(table.dated_by)}"
    for name, check in table.checks.items():
        yield f"- constraint {name}: `{check}`"
    for name, value in table.delta_properties.items():
        yield f"- property: `{name} = {value}`"
    yield ""
    yield "| column | type | null | what |"
    yield "|---|---|---|---|"
    for column in table.columns:
        yield from _column(column, "")


def _column(column: StructField, parent: str) -> Iterator[str]:
    """A column, and below it the fields of its elements."""
    comment = _cell(column.metadata.get("comment", ""))
    null = "yes" if column.nullable else "no"
    yield f"| {parent}{column.name} | {_short(column.dataType)} | {null} | {comment} |"
    element = column.dataType.elementType if isinstance(column.dataType, ArrayType) else column.dataType
    if isinstance(element, StructType):
        mark = "[]." if isinstance(column.dataType, ArrayType) else "."
        for field in element.fields:
            yield from _column(field, f"{parent}{column.name}{mark}")


def _short(data_type: DataType) -> str:
    """A type; the fields of a struct are rows of their own."""
    if isinstance(data_type, ArrayType):
        return f"array of {_short(data_type.elementType)}"
    return "struct" if isinstance(data_type, StructType) else data_type.simpleString()


def _names(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _cell(text: str) -> str:
    """Comments are ours: of Markdown's signs only those that occur in them."""
    return text.replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*")


def _anchor(heading: str) -> str:
    """GitHub's anchor of a heading: dots go."""
    return heading.replace(".", "").lower()

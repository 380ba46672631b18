"""SQL over a lake on Spark: every table under its name, the views of `schemas.views`, and queries that cannot write."""

from __future__ import annotations

import re

import pyarrow as pa
from pyspark.errors import ParseException, PySparkException
from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from highwater.pipelines.base.errors import InputError
from highwater.pipelines.lake.contents import find_tables
from highwater.pipelines.lake.lake import read_parquet
from highwater.pipelines.lake.tables import require_readable
from highwater.pipelines.storage.place import Place
from highwater.schemas.views import list_views, make_alias

_WORD = re.compile(r"\w+")


def register(spark: SparkSession, root: Place, statement: str | None = None) -> list[str]:
    """Create temporary views of the lake's tables (``gold_violations``) and the analysis views over them.

    The views show the current versions. Call this again after an audit.

    Args:
        statement: create only the views that it names. None creates all.

    Returns:
        The names of the views.

    Raises:
        InputError: the lake was not found, or a table names files elsewhere.
    """
    tables = find_tables(root)
    if not tables:
        raise InputError(root, "is not a lake", "ingest logs first, or name the lake with --lake")
    views = list_views(tables)
    if statement is not None:
        words = {word.lower() for word in _WORD.findall(statement)}
        views = [view for view in views if view.name in words]
        wanted = {name for view in views for name in view.reads}
        tables = {name: path for name, path in tables.items() if name in wanted or make_alias(name).lower() in words}
    for full_name, path in tables.items():
        log = require_readable(path)
        rows = read_parquet(spark, [path / file.path for file in log.files], StructType.fromJson(dict(log.schema)))
        rows.createOrReplaceTempView(make_alias(full_name))
    for view in views:
        spark.sql(view.sql).createOrReplaceTempView(view.name)
    return [*map(make_alias, tables), *(view.name for view in views)]


def run_query(spark: SparkSession, statement: str) -> pa.Table:
    """Return the rows of one query, in its order.

    The statement is inserted where Spark's grammar only allows a query, so INSERT, DROP or CALL is a syntax error. That
    prevents writes by mistake. It does not stop a user who may run code on this machine.

    Raises:
        InputError: the statement is not a query, or Spark cannot run it.
    """
    # The error below says it; PySpark would write it to stderr as well, as JSON.
    PySparkLogger.getLogger("SQLQueryContextLogger").disabled = True
    # A comment may be at its end, hence the new lines.
    text = f"SELECT * FROM (\n{statement.strip().rstrip(';')}\n)"
    try:
        return spark.sql(text).toArrow()
    except ParseException as error:
        # The position that the message names is one in the text above.
        near = (error.getMessageParameters() or {}).get("error", "it")
        raise InputError("SQL", f"is not a query that Spark understands, near {near}", _REMEDY) from None
    except PySparkException as error:
        if error.getCondition() is None:
            raise
        raise InputError("SQL", str(error).splitlines()[0], _REMEDY) from None


_REMEDY = (
    "only queries are answered; see `highwater sql` for the names, and `highwater tables NAME` for the columns of one"
)

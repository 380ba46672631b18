"""A lake's tables and views in the session's catalog.

The catalog gets the names of tables with a location, whose files stay when the name is dropped, and of the views of
`schemas.views`. Names are the same as in ``highwater sql``: ``gold_violations``.
"""

from __future__ import annotations

from functools import partial
from urllib.parse import unquote

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from highwater.pipelines.base.errors import InputError
from highwater.pipelines.base.threads import run_concurrently
from highwater.pipelines.lake.contents import find_tables
from highwater.pipelines.lake.tables import escape_text, format_hadoop_path, require_readable
from highwater.pipelines.storage.place import Place, place_of, resolved
from highwater.schemas.views import list_views, make_alias


def require_schema(spark: SparkSession, name: str) -> None:
    """Check that the schema exists before any work.

    Raises:
        InputError: the catalog or the schema was not found.
    """
    try:
        there = spark.catalog.databaseExists(name)
    except AnalysisException as error:
        raise InputError(name, f"cannot be asked for ({_first_line(error)})", _REMEDY) from None
    if not there:
        raise InputError(name, "there is no such schema in the session's catalogs", _REMEDY)


def register_tables(spark: SparkSession, root: Place, name: str) -> list[str]:
    """Register the lake's tables and views in a schema of the catalog, and return their names. Safe to repeat.

    Args:
        name: ``catalog.schema``, which must exist.

    Raises:
        InputError: a name is in use for another table, or the catalog refuses.
    """
    tables = find_tables(root)
    views = list_views(tables)
    catalog, database = spark.catalog.currentCatalog(), spark.catalog.currentDatabase()
    # Statements name declared tables in the current schema. A view keeps the schema in which it was created.
    of_catalog, of_schema = name.split(".")
    try:
        spark.catalog.setCurrentCatalog(of_catalog)
        spark.catalog.setCurrentDatabase(of_schema)
        there = {row["tableName"] for row in spark.sql("SHOW TABLES").collect()}
        places = {make_alias(full_name): resolved(path) for full_name, path in tables.items()}
        run_concurrently(
            [
                partial(_require_place, spark, alias, place, name)
                if alias in there
                else partial(_register_table, spark, alias, place)
                for alias, place in places.items()
            ]
        )
        for view in views:
            spark.sql(f"CREATE OR REPLACE VIEW {view.name} COMMENT {escape_text(view.comment)} AS {view.sql}")
    except AnalysisException as error:
        raise InputError(name, f"the catalog refuses a name ({_first_line(error)})", _REMEDY) from error
    finally:
        spark.catalog.setCurrentCatalog(catalog)
        spark.catalog.setCurrentDatabase(database)
    return [*map(make_alias, tables), *(view.name for view in views)]


def _register_table(spark: SparkSession, alias: str, path: Place) -> None:
    require_readable(path)
    spark.catalog.createTable(alias, format_hadoop_path(path), "delta")


def _require_place(spark: SparkSession, alias: str, path: Place, schema: str) -> None:
    stands = spark.sql(f"DESCRIBE DETAIL {alias}").collect()[0]["location"]
    if stands is None or _place(stands) != path:
        raise InputError(f"{schema}.{alias}", f"is another table already (at {stands})", _REMEDY)


def _place(location: str) -> Place:
    """Return the location in a path or URI written by Hadoop. Only `file:` URIs are percent-encoded."""
    return place_of(location if location.startswith("file:") else unquote(location))


def _first_line(error: AnalysisException) -> str:
    return str(error).splitlines()[0]


_REMEDY = "make a schema for this lake alone, and name it with --catalog"

"""The interface from Python: an audit, or the last audit of a lake, as an object with its tables."""

from __future__ import annotations

import io
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from highwater.jobs.configuration import check_config
from highwater.jobs.fetch_jars import fetch_missing
from highwater.jobs.lakes import list_tables
from highwater.jobs.steps import Run, audited, make_report
from highwater.log_source import KafkaBrokerLog
from highwater.pipelines.base.config import Config
from highwater.pipelines.base.console import Console, RichConsole
from highwater.pipelines.base.errors import InputError
from highwater.pipelines.lake.reader import LakeReader
from highwater.pipelines.lake.stored_tables import StoredTables
from highwater.pipelines.report.model import Finding, Headline, Incident, Report
from highwater.pipelines.report.printed import print_report
from highwater.pipelines.spark.session import build_session
from highwater.pipelines.storage.place import Place, place_of
from highwater.schemas.bronze import LOG_FILES
from highwater.schemas.views import list_views, make_alias
from highwater.views import register

PathLike = str | os.PathLike[str]
DEFAULT_LAKE = "highwater-lake"
#: Setting of a session in which the data source is registered: Spark warns where one is replaced.
_HAS_FORMAT = "highwater.format"


class Audit:
    """Result of an audit, with access to the tables of its lake.

    Args:
        run: options of the audit.
        report: the report. None builds it from the lake when needed.
    """

    def __init__(self, run: Run, report: Report | None = None) -> None:
        self._run = run
        if report is not None:
            self.report = report

    @cached_property
    def report(self) -> Report:
        """The content of report.json (docs/report_json.md)."""
        return make_report(self._run)

    @property
    def lake(self) -> Place:
        """Folder of the tables."""
        return self._run.lake

    @property
    def verdict(self) -> str:
        """Verdict: clean, violated or inconclusive."""
        return self.report.verdict

    @property
    def verdict_class(self) -> str:
        """Class of the verdict: data_lost, guarantee_broken, undecided, not_enough_evidence or clean."""
        return self.report.verdict_class

    @property
    def headline(self) -> Headline:
        """The worst effect, its cause, and what to do now."""
        return self.report.headline

    @property
    def incidents(self) -> tuple[Incident, ...]:
        """What happened, the most harmful first."""
        return self.report.incidents

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Violations, then open cases, then observations."""
        return (*self.report.violations, *self.report.open_cases, *self.report.observations)

    @property
    def tables(self) -> list[str]:
        """Names of the views and tables, as SQL has them."""
        tables = list_tables(self.lake)
        return [*(view.name for view in list_views(tables)), *map(make_alias, tables)]

    def table(self, name: str) -> pa.Table:
        """Return the rows of a table (``gold.incidents`` or ``gold_incidents``) or of a view (``incidents``).

        Raises:
            InputError: there is no such table or view.
        """
        return self.sql(f"SELECT * FROM {self._known(name)}")

    def sql(self, query: str) -> pa.Table:
        """Return the rows of a query over tables and views, by DuckDB.

        Raises:
            InputError: it is not a query, or it cannot be answered.
        """
        return LakeReader(self.lake, list_tables(self.lake)).query(query)

    def spark(self, name: str) -> DataFrame:
        """Return a table or view as a DataFrame of Spark.

        Raises:
            InputError: there is no such table or view.
        """
        known = self._known(name)
        session = _session(self._run.config, self.lake)
        register(session, self.lake, known)
        return session.table(known)

    def _known(self, name: str) -> str:
        known = make_alias(name)
        if known not in self.tables:
            raise InputError(self.lake, f"has no table or view {name!r}", "expected a name of `Audit.tables`")
        return known

    def __str__(self) -> str:
        """Return what the command prints of the report."""
        return print_report(self.report, "text")

    def __repr__(self) -> str:
        return f"<Audit of {self.lake}>"


def audit(
    logs: PathLike | Sequence[PathLike],
    lake: PathLike = DEFAULT_LAKE,
    out: PathLike | None = None,
    *,
    time_from: datetime | str | None = None,
    time_until: datetime | str | None = None,
    master: str | None = None,
    conf: PathLike | None = None,
    settings: Mapping[str, Any] | None = None,
    quiet: bool = False,
) -> Audit:
    """Audit logs, as ``highwater audit`` does.

    Args:
        logs: files or folders, paths or URIs.
        lake: folder of the tables.
        out: folder for report.html and the other files. None: they are not written.
        time_from: first instant of what is reported, ISO 8601, UTC unless it has a zone.
        time_until: end of what is reported, exclusive.
        master: master of Spark.
        conf: a TOML file that changes the configuration.
        settings: values of the configuration by dotted key, such as ``ingest.timezone``.
        quiet: leave out progress and warnings on stderr.

    Raises:
        HighwaterError: the logs or the configuration are invalid, or the machine lacks something.
    """
    config = _config(master, conf, settings)
    console = Console() if quiet else RichConsole(io.StringIO())
    given = [logs] if isinstance(logs, str | os.PathLike) else logs
    run = Run(
        config,
        console,
        place_of(lake),
        has_output=out is not None,
        time_from=_time(time_from),
        time_until=_time(time_until),
    )
    if out is not None:
        run = replace(run, out=place_of(out))
    return Audit(run, audited(run, [place_of(log) for log in given]))


def open(  # the name that others use for what opens
    lake: PathLike = DEFAULT_LAKE,
    *,
    cluster: str | None = None,
    time_from: datetime | str | None = None,
    time_until: datetime | str | None = None,
    conf: PathLike | None = None,
    settings: Mapping[str, Any] | None = None,
) -> Audit:
    """Open the last audit of a lake, as ``highwater report`` does. Starts no JVM.

    Args:
        lake: folder of the tables.
        cluster: name or id of the only cluster that is reported.
        time_from, time_until, conf, settings: as of `audit`.

    Raises:
        InputError: there is no lake.
    """
    place = place_of(lake)
    list_tables(place)
    config = _config(None, conf, settings)
    return Audit(
        Run(
            config,
            Console(),
            place,
            cluster=cluster,
            has_output=False,
            time_from=_time(time_from),
            time_until=_time(time_until),
        )
    )


def spark(
    lake: PathLike | None = None,
    *,
    master: str | None = None,
    conf: PathLike | None = None,
    settings: Mapping[str, Any] | None = None,
) -> SparkSession:
    """Return a session with Delta and the format ``kafka-broker-log``, or join the session that is there.

    Args:
        lake: folder whose tables and views get names in the session. Call this again after an audit.
        master, conf, settings: as of `audit`.

    Raises:
        HighwaterError: there is no lake, or no Java that fits.
    """
    place = None if lake is None else place_of(lake)
    session = _session(_config(master, conf, settings), place)
    if place is not None:
        register(session, place)
    return session


def _session(config: Config, lake: Place | None) -> SparkSession:
    session = SparkSession.getActiveSession()
    if session is None:
        fetch_missing(Console(), config.session)
        sizes = None if lake is None else StoredTables(lake).rows(LOG_FILES, "size_bytes")["size_bytes"]
        text_bytes = 0 if sizes is None else pc.sum(sizes).as_py() or 0
        session = build_session(config, "highwater", text_bytes, lake)
    if session.conf.get(_HAS_FORMAT, None) is None:
        session.dataSource.register(KafkaBrokerLog)
        session.conf.set(_HAS_FORMAT, "true")
    return session


def _config(master: str | None, conf: PathLike | None, settings: Mapping[str, Any] | None) -> Config:
    return check_config(None if conf is None else Path(conf), {**(settings or {}), "session.master": master})


def _time(time: datetime | str | None) -> datetime | None:
    if isinstance(time, str):
        time = datetime.fromisoformat(time)
    return time if time is None or time.tzinfo else time.replace(tzinfo=UTC)

"""The interface from Python, with Spark: the same answers as those of the command."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

import highwater
from highwater.pipelines.lake.lake import Lake
from highwater.schemas.views import make_alias
from tests.verbs import SLICE, Ended


def test_an_opened_lake_has_the_answers_of_its_report(audited_slice: tuple[Path, Ended]) -> None:
    folder, ended = audited_slice
    audit = highwater.open(folder / "lake")
    assert (audit.verdict, audit.verdict_class) == (ended.report["verdict"], ended.report["verdict_class"])
    assert list(audit.headline.text) == ended.report["headline"]["text"]
    assert [each.incident_id for each in audit.incidents] == [each["incident_id"] for each in ended.report["incidents"]]
    found = {each["finding_id"] for name in ("violations", "observations", "open_cases") for each in ended.report[name]}
    assert {each.finding_id for each in audit.findings} == found
    assert str(audit).splitlines()[:9] == ended.out.splitlines()[:9]


def test_a_session_has_the_names_of_a_lake(spark: SparkSession, slice_lake: Lake) -> None:
    audit = highwater.open(slice_lake.root)
    assert highwater.spark(slice_lake.root).sparkContext is spark.sparkContext
    assert {name for name in audit.tables if spark.catalog.tableExists(name)} == set(audit.tables)
    frame = audit.spark("gold.incidents")
    assert frame.count() == audit.table("gold.incidents").num_rows
    assert frame.columns == audit.table("gold.incidents").column_names


def test_the_data_source_gives_the_rows_of_the_lake(spark: SparkSession, slice_lake: Lake) -> None:
    highwater.spark(slice_lake.root)
    names = "file_id", "byte_offset", "line_no", "broker_id", "time", "message"
    read = spark.read.format("kafka-broker-log").load(str(SLICE)).select(*names)
    assert read.exceptAll(spark.table("bronze_log_lines").select(*names)).isEmpty()
    assert read.count() == spark.table("bronze_log_lines").count()
    for table in ("produce_requests", "leader_and_isr"):
        facts = spark.read.format("kafka-broker-log").option("facts", table).load(str(SLICE))
        assert facts.exceptAll(spark.table(make_alias(f"silver.{table}")).select(*facts.columns)).isEmpty()
        assert facts.count() == spark.table(make_alias(f"silver.{table}")).count()


def test_the_data_source_names_what_is_wrong(spark: SparkSession, slice_lake: Lake) -> None:
    highwater.spark(slice_lake.root)
    with pytest.raises(AnalysisException, match="expected one of appends"):
        spark.read.format("kafka-broker-log").option("facts", "produces").load(str(SLICE))


@pytest.mark.usefixtures("spark")
def test_an_audit_leaves_the_session_and_writes_a_report_where_it_is_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = SLICE / "broker-1" / "logs" / "server.log.gz"
    audit = highwater.audit(log, lake=tmp_path / "lake", out=tmp_path / "report", quiet=True)
    assert audit.verdict == "inconclusive"
    assert (tmp_path / "report" / "report.html").is_file()
    assert capsys.readouterr() == ("", "")
    active = SparkSession.getActiveSession()
    assert active is not None
    assert active.range(1).count() == 1
    again = highwater.audit([log], lake=tmp_path / "lake", time_from="2026-11-20T15:33", quiet=True)
    assert again.report.window.since is not None

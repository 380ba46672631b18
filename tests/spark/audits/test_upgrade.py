"""A lake of an older version, and what a change of one component of the program computes anew."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from highwater.pipelines.base import fingerprint
from highwater.pipelines.lake.lake import Lake
from highwater.pipelines.silver import parse as parse_stage
from highwater.schemas import silver
from highwater.schemas.audit import RULE_RESULTS
from highwater.schemas.gold import DELAYED_OPERATIONS
from highwater.schemas.state import RUNS, UPGRADES
from tests.catalog import ANSWERS, NAME_FILES
from tests.spark.audits.test_incremental import content
from tests.verbs import SLICE, Ended

Verb = Callable[..., Ended]
COMPARED = [spec for spec in (*silver.TABLES, *ANSWERS) if spec not in NAME_FILES]


@pytest.fixture
def older(audited_slice: tuple[Path, Ended], tmp_path: Path) -> Path:
    """A copy of the slice's lake."""
    shutil.copytree(audited_slice[0] / "lake", tmp_path / "lake")
    return tmp_path


def contents(lake: Lake) -> dict[str, tuple[int, str]]:
    return {spec.full_name: content(lake.read(spec)) for spec in COMPARED}


def as_an_older_version_declared(
    folder: Path, full_name: str, change: Callable[[list[dict[str, Any]]], object]
) -> None:
    """Rewrite the columns in a table's first commit, as if it had been made with them."""
    commit = folder / "lake" / Path(*full_name.split(".")) / "_delta_log" / f"{0:020}.json"
    (commit.with_name(f".{commit.name}.crc")).unlink(missing_ok=True)
    commit.with_suffix(".crc").unlink(missing_ok=True)
    actions = [json.loads(line) for line in commit.read_text().splitlines()]
    for action in actions:
        if "metaData" in action:
            schema = json.loads(action["metaData"]["schemaString"])
            change(schema["fields"])
            action["metaData"]["schemaString"] = json.dumps(schema)
    commit.write_text("".join(json.dumps(action) + "\n" for action in actions))


def without(name: str) -> Callable[[list[dict[str, Any]]], None]:
    def change(fields: list[dict[str, Any]]) -> None:
        fields[:] = [field for field in fields if field["name"] != name]

    return change


def with_type(name: str, data_type: str) -> Callable[[list[dict[str, Any]]], None]:
    def change(fields: list[dict[str, Any]]) -> None:
        next(field for field in fields if field["name"] == name)["type"] = data_type

    return change


def upgrades(lake: Lake) -> dict[str, str]:
    return {row["table_name"]: row["change"] for row in lake.read(UPGRADES).collect()}


def changes(lake: Lake) -> list[tuple[str, list[str] | None]]:
    """Of the last run, why each broker was replayed, and what of the program had changed."""
    rows = lake.read(RUNS).collect()
    last = max(row["replayed_time"] for row in rows)
    return [(row["reason"], row["changes"]) for row in rows if row["replayed_time"] == last]


@pytest.mark.long
def test_a_lake_of_an_older_version_becomes_one_of_this(
    spark: SparkSession, verb: Verb, older: Path, slice_lake: Lake
) -> None:
    as_an_older_version_declared(older, "state.runs", without("silver_versions"))
    as_an_older_version_declared(older, "gold.delayed_operations", without("known_bug"))
    as_an_older_version_declared(older, "silver.truncations", with_type("line_no", "string"))
    as_an_older_version_declared(older, "gold.isr_timeline", with_type("lag_time_max_ms", "string"))
    for full_name in ("gold.clock_bounds", "state.inventory", "silver.segment_rolls"):
        shutil.rmtree(older / "lake" / Path(*full_name.split(".")))
    lake = Lake(spark, older / "lake")
    refused = verb(older, "report")
    assert refused.code == 2
    assert "run `highwater replay` on it" in refused.complaints[0]

    ended = verb(older, "audit", SLICE)
    assert ended.code == 0, ended.err
    assert contents(lake) == contents(slice_lake)
    done = upgrades(lake)
    assert done["state.runs"] == "columns added: silver_versions"
    assert done["gold.delayed_operations"] == "columns added: known_bug"
    assert done["silver.truncations"].startswith("parsed again from bronze, since it differs")
    assert done["gold.isr_timeline"].startswith("made anew from silver, since it differs")
    assert done["gold.clock_bounds"] == done["silver.segment_rolls"] == "new table"
    assert {reason for reason, _ in changes(lake)} == {"fingerprint"}
    assert all(what == ["tables"] for _, what in changes(lake))
    assert "all lines again" in ended.err
    versions = lake.versions()
    again = verb(older, "audit", SLICE)
    assert (again.code, lake.versions()) == (0, versions)


@pytest.mark.long
def test_other_grammars_reach_old_lines(
    spark: SparkSession, verb: Verb, older: Path, slice_lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = Lake(spark, older / "lake")
    # What an older grammar did not know.
    lake.empty(silver.TRUNCATIONS)
    lake.remove(silver.LEADER_AND_ISR, "role", ["follower_start"])
    original = fingerprint.compute_grammar_fingerprint()
    monkeypatch.setattr(parse_stage, "compute_grammar_fingerprint", lambda: f"{original[:-1]}-")
    ended = verb(older, "audit", SLICE)
    assert ended.code == 0, ended.err
    assert contents(lake) == contents(slice_lake)
    assert {(reason, *(what or ())) for reason, what in changes(lake)} == {("fingerprint", "grammar")}


@pytest.mark.long
def test_other_rules_replay_nothing_and_another_report_computes_nothing(
    spark: SparkSession, verb: Verb, older: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = Lake(spark, older / "lake")
    before = lake.versions()
    conf = older / "conf.toml"
    conf.write_text("[report]\ntimeline_interval_s = 60\n[quality]\ntime_slack_ms = 5\n")
    ended = verb(older, "audit", SLICE, "--conf", conf)
    assert "nothing new: the gold tables are up to date" in ended.err
    assert {name for name, version in lake.versions().items() if version != before[name]} <= {"gold.runs"}

    before = lake.versions()
    conf.write_text('[audit.severity]\nerror-yet-committed = "off"\n')
    assert verb(older, "audit", SLICE, "--conf", conf).code == 0
    written = {name for name, version in lake.versions().items() if version != before[name]}
    assert RULE_RESULTS.full_name in written
    assert DELAYED_OPERATIONS.full_name not in written
    assert "gold.fetcher_timeline" not in written
    assert {(reason, *(what or ())) for reason, what in changes(lake)} == {("unchanged", "rules")}

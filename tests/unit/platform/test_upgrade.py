"""A lake that an older version made becomes one of this version; one that a newer version made is refused."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from pyspark.sql.types import StructField

from highwater.pipelines.base.errors import InputError, SchemaMismatch
from highwater.pipelines.base.fingerprint import TABLES as MADE_ANEW
from highwater.pipelines.base.fingerprint import code_version
from highwater.pipelines.kafka.seals import StoredRun
from highwater.pipelines.lake import program as lake_program
from highwater.pipelines.lake.commits import read_stamps
from highwater.pipelines.lake.delta_commits import allow_commits, append
from highwater.pipelines.lake.delta_log import find_version, read_log
from highwater.pipelines.lake.parquet import read_files
from highwater.pipelines.lake.stored_tables import StoredTables
from highwater.pipelines.lake.table_files import build_table, write_rows
from highwater.pipelines.lake.tables import create_table
from highwater.pipelines.replay.runs import runs_of
from highwater.pipelines.upkeep import upgrade
from highwater.schemas.bronze import LOG_FILES
from highwater.schemas.catalog import TABLES
from highwater.schemas.gold import RUNS
from highwater.schemas.silver import TOPICS, TRUNCATIONS
from highwater.schemas.state import RUNS as LEDGER
from highwater.schemas.state import UPGRADES
from highwater.schemas.table import STRING, TableSpec, column, required

NOW = datetime(2026, 11, 20, tzinfo=UTC)
TOPIC = ("c", 1, NOW, "f", 0, 1, 0)
RUN = ("r", NOW, NOW, "0.4.0", "c", "f", "clean", 1, 1, 1)


class Cut(Exception):
    """The process is killed."""


def of_older(spec: TableSpec, *columns: StructField, **changes: Any) -> TableSpec:
    names = {field.name for field in columns}
    words = {name: allowed for name, allowed in spec.words.items() if name in names}
    return replace(spec, columns=columns, words=words, **changes)


def make(root: Path, spec: TableSpec, rows: Sequence[tuple[Any, ...]] = (), stamp: str = "batch") -> Path:
    folder = root / spec.layer / spec.name
    create_table(folder, spec)
    if rows:
        append(folder, write_rows(folder, spec, build_table(spec, rows)), stamp)
    return folder


def older_lake(root: Path, *older: TableSpec) -> None:
    """A lake with a row or two, of a version that declared some tables otherwise, and others not at all."""
    specs = {spec.full_name: spec for spec in (LOG_FILES, TOPICS, TRUNCATIONS, RUNS, LEDGER)}
    specs |= {spec.full_name: spec for spec in older}
    for spec in specs.values():
        make(root, spec)
    topics = specs[TOPICS.full_name]
    told = {"topic": "t", "topic_id": "i", "odd": "o"}
    rest = tuple(told.get(field.name) for field in topics.columns[len(TOPIC) :])
    folder = root / "silver" / "topics"
    append(folder, write_rows(folder, topics, build_table(topics, [(*TOPIC, *rest)])), "batch grammar")
    folder = root / "gold" / "runs"
    runs = specs[RUNS.full_name]
    append(folder, write_rows(folder, runs, build_table(runs, [RUN[: len(runs.columns)]])), "r")
    folder, ledger = root / "state" / "runs", specs[LEDGER.full_name]
    ran = {
        "run_number": 3,
        "run_id": "r",
        "replayed_time": NOW,
        "components": "replay-1",
        "folds_run": 3,
        "file_ids": [],
    }
    append(folder, write_rows(folder, ledger, build_table(ledger, [tuple(map(ran.get, ledger.column_names))])), "r")


def rows_of(root: Path, spec: TableSpec) -> list[dict[str, Any]]:
    folder = root / spec.layer / spec.name
    files = [folder / file.path for file in read_log(folder).files]
    return list(read_files(spec, files, spec.column_names).to_pylist())


def last_stamp(root: Path, spec: TableSpec) -> str | None:
    return next((stamp for _, stamp in read_stamps(root / spec.layer / spec.name)), None)


def last_run(root: Path) -> StoredRun:
    return runs_of(StoredTables(root))[0]


def without_last(spec: TableSpec) -> TableSpec:
    return of_older(spec, *spec.columns[:-1])


def test_a_lake_of_this_version_is_left_alone(tmp_path: Path) -> None:
    for spec in TABLES:
        make(tmp_path, spec)
    assert upgrade.plan_upgrade(tmp_path) == upgrade.upgrade(tmp_path, allow_commits) == []
    assert {find_version(tmp_path / spec.layer / spec.name) for spec in TABLES} == {0}


def test_a_lake_says_which_version_made_it(tmp_path: Path) -> None:
    upgrade.note_version(tmp_path)
    assert not lake_program.is_noted(tmp_path)
    make(tmp_path, LOG_FILES)
    upgrade.note_version(tmp_path)
    assert lake_program.is_noted(tmp_path)


def test_a_folder_without_tables_is_left_alone(tmp_path: Path) -> None:
    assert upgrade.upgrade(tmp_path / "lake", allow_commits) == []
    assert list(tmp_path.iterdir()) == []


def test_columns_are_added_and_tables_made_and_rows_stay(tmp_path: Path) -> None:
    assert TOPICS.columns[-1].nullable or LEDGER.columns[-1].nullable
    older_lake(tmp_path, without_last(LEDGER))
    done = upgrade.upgrade(tmp_path, allow_commits)
    assert "state.runs: columns added: silver_versions" in done
    assert len(done) == len(TABLES) - 5 + 1
    assert all(find_version(tmp_path / spec.layer / spec.name) is not None for spec in TABLES)
    assert [row["topic"] for row in rows_of(tmp_path, TOPICS)] == ["t"]
    assert last_stamp(tmp_path, TOPICS) == "batch grammar", "its rows are of the same grammars as before"
    assert last_run(tmp_path).run_id == "r", "the next run goes on from the last one"
    assert [f"{row['table_name']}: {row['change']}" for row in rows_of(tmp_path, UPGRADES)] == done
    assert upgrade.upgrade(tmp_path, allow_commits) == []


def test_other_readers_see_the_new_columns(tmp_path: Path) -> None:
    folder = make(tmp_path, of_older(LOG_FILES, *(field for field in LOG_FILES.columns if field.name != "mode")))
    upgrade.upgrade(tmp_path, allow_commits)
    assert [field.name for field in DeltaTable(str(folder)).schema().fields] == list(LOG_FILES.column_names)


def clustered(folder: Path) -> None:
    """Have a table be made as versions up to 0.5 made it."""
    commit = folder / "_delta_log" / f"{0:020}.json"
    actions = [json.loads(line) for line in commit.read_text().splitlines()]
    features = ["appendOnly", "changeDataFeed", "checkConstraints", "clustering", "domainMetadata", "invariants"]
    protocol = {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": features}
    actions = [action | {"protocol": protocol} if "protocol" in action else action for action in actions]
    domain = {"domain": "delta.clustering", "configuration": '{"clusteringColumns":[["topic"]]}', "removed": False}
    commit.write_text("".join(json.dumps(action) + "\n" for action in [*actions, {"domainMetadata": domain}]))


VERBS = [upgrade.plan_upgrade, upgrade.require_up_to_date, partial(upgrade.upgrade, fence=allow_commits)]


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("wrote", [None, "0.5.0", "0.4"])
def test_a_lake_of_0_5_or_older_has_to_be_rebuilt(tmp_path: Path, verb: Callable[[Path], object], wrote: str | None):
    older_lake(tmp_path)
    if wrote is None:
        clustered(tmp_path / "silver" / "topics")
    else:
        (tmp_path / "_highwater").mkdir()
        (tmp_path / "_highwater" / "program.json").write_text(json.dumps({"version": wrote, "tables": ""}))
    before = {file: file.read_bytes() for file in tmp_path.rglob("*.json")}
    with pytest.raises(InputError, match=r"0\.5 .*rebuild it: audit the logs into a new --lake"):
        verb(tmp_path)
    assert {file: file.read_bytes() for file in tmp_path.rglob("*.json")} == before


def test_a_table_that_nothing_can_be_made_from_is_refused(tmp_path: Path) -> None:
    make(tmp_path, without_last(LOG_FILES))
    with pytest.raises(SchemaMismatch, match=r"bronze\.log_files \(columns run_id\)"):
        upgrade.upgrade(tmp_path, allow_commits)


def test_constraints_that_rows_may_break_are_not_set(tmp_path: Path) -> None:
    older_lake(tmp_path, replace(RUNS, checks={}), replace(TOPICS, checks={}))
    before = find_version(tmp_path / "silver" / "topics")
    with pytest.MonkeyPatch.context() as patch:
        stricter = replace(RUNS, checks={"many": "files > 1"})
        patch.setattr(upgrade, "TABLES", tuple(stricter if spec is RUNS else spec for spec in TABLES))
        with pytest.raises(SchemaMismatch, match=r"gold\.runs"):
            upgrade.upgrade(tmp_path, allow_commits)
    assert find_version(tmp_path / "silver" / "topics") == before
    assert not (tmp_path / "state" / "upgrades").exists(), "nothing was begun"


def test_silver_that_differs_is_emptied_for_the_next_parse(tmp_path: Path) -> None:
    older_lake(tmp_path, of_older(TOPICS, *TOPICS.columns, column("odd", STRING, "Odd")))
    done = upgrade.upgrade(tmp_path, allow_commits)
    assert next(line for line in done if line.startswith("silver.topics: parsed again from bronze, since it differs"))
    assert rows_of(tmp_path, TOPICS) == []
    assert last_stamp(tmp_path, TOPICS) == upgrade.EMPTIED
    assert last_run(tmp_path).run_id == "r"


def test_gold_that_differs_is_made_anew_and_the_ledger_says_so_first(tmp_path: Path) -> None:
    spec = next(spec for spec in TABLES if spec.full_name == "gold.isr_timeline")
    older = of_older(spec, required("isr_was", STRING, "Gone"), *spec.columns)
    older_lake(tmp_path, older)
    order: list[str] = []

    def fence() -> None:
        order.append(last_run(tmp_path).components)

    done = upgrade.upgrade(tmp_path, fence)
    assert any(line.startswith("gold.isr_timeline: made anew from silver, since it differs") for line in done)
    assert last_run(tmp_path) == StoredRun(4, "", MADE_ANEW)
    assert read_log(tmp_path / "gold" / "isr_timeline").schema["fields"][0]["name"] != "isr_was"
    assert order[-1] == MADE_ANEW


@pytest.mark.parametrize("commits", range(1, 8))
def test_cut_off_anywhere_the_next_run_goes_on(tmp_path: Path, commits: int) -> None:
    isr = next(spec for spec in TABLES if spec.full_name == "gold.isr_timeline")
    older_lake(
        tmp_path,
        without_last(LEDGER),
        of_older(TOPICS, *TOPICS.columns, column("odd", STRING, "Odd")),
        of_older(isr, required("isr_was", STRING, "Gone"), *isr.columns),
        *(spec for spec in TABLES if spec.layer in ("gold", "quality") and spec not in (isr, RUNS)),
    )
    left = commits

    def fence() -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise Cut

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(upgrade, "datetime", _Clock)
        with pytest.raises(Cut):
            upgrade.upgrade(tmp_path, fence)
        upgrade.upgrade(tmp_path, allow_commits)
    assert upgrade.plan_upgrade(tmp_path) == []
    assert last_stamp(tmp_path, TOPICS) == upgrade.EMPTIED
    assert last_run(tmp_path) == StoredRun(4, "", MADE_ANEW)
    assert {row["table_name"] for row in rows_of(tmp_path, UPGRADES)} >= {"silver.topics", "gold.isr_timeline"}


class _Clock:
    now = staticmethod(lambda _zone: NOW)


@pytest.mark.parametrize(("wrote", "refused"), [("99.0", True), ("0.5.1.dev0", False), (code_version(), False)])
@pytest.mark.parametrize("verb", [upgrade.plan_upgrade, upgrade.require_up_to_date, lake_program.require_known_version])
def test_a_lake_of_a_newer_version_is_refused(
    tmp_path: Path, wrote: str, refused: bool, verb: Callable[[Path], object]
):
    older_lake(tmp_path)
    file = tmp_path / "_highwater" / "program.json"
    file.parent.mkdir()
    file.write_text(json.dumps({"version": wrote, "tables": ""}))
    if refused:
        with pytest.raises(InputError, match=r"was written by highwater 99\.0, and this is .*; use version 99\.0"):
            verb(tmp_path)
    else:
        verb(tmp_path)


@pytest.mark.parametrize("content", ["", "{", "[]", '{"version": 1}'])
def test_a_lake_that_does_not_say_which_version_wrote_it_is_refused(tmp_path: Path, content: str) -> None:
    older_lake(tmp_path)
    file = tmp_path / "_highwater" / "program.json"
    file.parent.mkdir()
    file.write_text(content)
    with pytest.raises(InputError, match=r"program\.json.* remove it"):
        upgrade.upgrade(tmp_path, allow_commits)
    file.unlink()
    upgrade.upgrade(tmp_path, allow_commits)


def test_who_only_reads_says_what_brings_a_lake_up(tmp_path: Path) -> None:
    older_lake(tmp_path, without_last(LEDGER))
    with pytest.raises(InputError, match=r"other columns in state\.runs; run `highwater replay`"):
        upgrade.require_up_to_date(tmp_path)
    upgrade.upgrade(tmp_path, allow_commits)
    upgrade.require_up_to_date(tmp_path)
    upgrade.require_up_to_date(tmp_path / "no lake")

"""Nothing unread is clean: damaged slices, each a cluster of one lake, beside one that is whole."""

from __future__ import annotations

import struct
import zipfile
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pyspark.sql import SparkSession

from highwater.pipelines.lake.lake import Lake
from highwater.schemas.audit import RULE_RESULTS
from highwater.schemas.gold import COVERAGE, HOLES
from tests.damage import (
    VALUES,
    Damage,
    begins_late,
    copy_of,
    cut,
    damaged,
    ends_early,
    filled,
    forged,
    nul,
    of_its_own,
    without,
)
from tests.spark.audits.conftest import Verb
from tests.verbs import SLICE, Ended

WHOLE = "whole"
_CLUSTER_ID = b"W-CQybfSRP-OafW0EWRB0Q"


def on(kind: str, broker_id: int, damage: Damage) -> Callable[[Path], None]:
    return lambda folder: damaged(folder / f"broker-{broker_id}" / "logs" / f"{kind}.log.gz", damage)


def request_log(broker_id: int, damage: Damage) -> Callable[[Path], None]:
    return on("kafka-request", broker_id, damage)


def without_kind(kind: str, broker_id: int) -> Callable[[Path], None]:
    return lambda folder: (folder / f"broker-{broker_id}" / "logs" / f"{kind}.log.gz").unlink()


def deleted(folder: Path) -> None:
    for broker_id in (1, 3):
        (folder / f"broker-{broker_id}" / "logs" / "kafka-request.log.gz").unlink()


def encrypted(folder: Path) -> None:
    log = folder / "broker-2" / "logs" / "kafka-request.log.gz"
    bundle = log.with_name("logs.zip")
    with zipfile.ZipFile(bundle, "w") as archive:
        archive.write(log, log.name)
    log.unlink()
    content = bytearray(bundle.read_bytes())
    # The flag of encryption, in the member's header and in the directory.
    for signature, offset in ((b"PK\3\4", 6), (b"PK\1\2", 8)):
        struct.pack_into("<H", content, content.index(signature) + offset, 1)
    bundle.write_bytes(content)


#: By cluster: what is done to its logs, the broker whose log has the hole, and why it is one.
DAMAGES: dict[str, tuple[Callable[[Path], None], int, str]] = {
    "cut": (request_log(1, cut(20)), 1, "lines_missing"),
    "nul": (request_log(3, nul(300_000, 0.5)), 3, "nul_bytes"),
    "nul-head": (request_log(2, nul(40_000, 0)), 2, "nul_bytes"),
    "early": (request_log(1, ends_early(20)), 1, "ends_early"),
    "late": (request_log(3, begins_late(20)), 3, "begins_late"),
    "deleted": (deleted, 3, "no_log"),
    "encrypted": (encrypted, 2, "not_read"),
    "forged": (on("server", 1, forged(VALUES["unbalanced"])), 1, "forged"),
    "filled": (on("server", 3, filled(b"\n", 4_000)), 3, "nul_bytes"),
    "no-changes": (without_kind("state-change", 1), 1, "no_log"),
    "no-produces": (request_log(1, without(rb"apiKey[:=](?:0|PRODUCE)\b|PRODUCE")), 1, "silent"),
    WHOLE: (lambda folder: None, 0, ""),
}


class Audited(NamedTuple):
    folder: Path
    ended: Ended
    lake: Lake

    def rows(self, spec: Any) -> dict[str, list[dict[str, Any]]]:
        by_cluster: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for row in self.lake.rows(spec, *spec.column_names).to_pylist():
            by_cluster[row["cluster_id"]].append(row)
        return by_cluster


@pytest.fixture(scope="module")
def audited(verb: Verb, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Audited:
    folder = tmp_path_factory.mktemp("holes")
    conf = folder / "clusters.toml"
    lines = ["[ingest.clusters]"]
    for name, (damage, _, _) in DAMAGES.items():
        damage(of_its_own(copy_of(SLICE, folder / "logs" / name), _CLUSTER_ID, name))
        lines.append(f'"{folder}/logs/{name}" = "{name}"')
    conf.write_text("\n".join(lines), encoding="utf-8")
    return Audited(folder, verb(folder, "audit", folder / "logs", "--conf", conf), Lake(spark, folder / "lake"))


def test_no_damaged_log_is_clean_and_none_is_accused(audited: Audited) -> None:
    assert audited.ended.code == 3, audited.ended.err
    verdicts = {part["cluster_id"]: part["verdict"] for part in audited.ended.report["clusters"]}
    assert verdicts == {name: "clean" if name == WHOLE else "inconclusive" for name in DAMAGES}
    assert audited.ended.report["violations"] == []


def test_the_tables_say_so_and_the_gate_reads_them(audited: Audited, verb: Verb) -> None:
    holes, results, coverage = (audited.rows(spec) for spec in (HOLES, RULE_RESULTS, COVERAGE))
    for name, (_, broker_id, reason) in DAMAGES.items():
        found = {(row["broker_id"], row["reason"]) for row in holes[name]}
        assert ((broker_id, reason) in found) == (name != WHOLE), (name, found)
        assert bool(found) == (name != WHOLE)
        assert any(row["verdict"] == "clean" for row in results[name]) == (name == WHOLE)
        assert any(row["outcome"] == "missing" for row in coverage[name]) == (name != WHOLE)
    assert audited.ended.report["coverage"]["share_parsed"] < 1
    assert verb(audited.folder, "gate").code == 3
    assert verb(audited.folder, "gate", "--cluster", WHOLE).code == 0


def test_a_window_without_lines_says_both_times(audited: Audited, verb: Verb) -> None:
    ended = verb(audited.folder, "report", "--from", "2027-01-01T00:00:00Z")
    assert ended.code == 3
    reason = ended.report["inconclusive"][0]
    assert reason.startswith("--from 2027-01-01T00:00:00.000Z is after the last line, 2026-11-20T15:34:2")

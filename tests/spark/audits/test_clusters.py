"""Two clusters in one lake: each has the rows, the verdict and the report of a lake of its own."""

from __future__ import annotations

import gzip
import re
import shutil
from collections import Counter
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import orjson
import pytest

from highwater.schemas.catalog import TABLES
from highwater.schemas.table import TableSpec
from tests.bench.contents import row_texts
from tests.spark.audits.conftest import Verb
from tests.verbs import SLICE, Ended

EAST_ID, WEST_ID, WEST = "W-CQybfSRP-OafW0EWRB0Q", "StFVvc9XQEetSc4jeax1NA", "west"
COMPARED = [spec for spec in TABLES if spec.layer in ("silver", "gold") and "cluster_id" in spec.column_names]


#: As each record begins.
TIME = re.compile(rb"^\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)", re.MULTILINE)


def of_west(text: bytes) -> bytes:
    """A log of the slice as that of another cluster, a second later."""
    return TIME.sub(_later, text).replace(EAST_ID.encode(), WEST_ID.encode())


def _later(time: re.Match[bytes]) -> bytes:
    moment = datetime.fromisoformat(time[1].decode()) + timedelta(seconds=1)
    return f"[{moment:%Y-%m-%d %H:%M:%S}".encode()


@pytest.fixture(scope="module")
def west(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Another cluster with the same brokers and topics, a second later; the logs of its third broker are missing."""
    folder = tmp_path_factory.mktemp("logs") / WEST
    for broker in ("broker-1", "broker-2"):
        for source in (SLICE / broker / "logs").iterdir():
            target = folder / broker / source.name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(gzip.compress(of_west(gzip.decompress(source.read_bytes())), 1))
    (folder.parent / "conf.toml").write_text(f'[ingest.clusters]\n"{folder}" = "{WEST}"\n')
    return folder


@pytest.fixture(scope="module")
def alone(verb: Verb, west: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Ended]:
    """The other cluster in a lake of its own."""
    folder = tmp_path_factory.mktemp("alone")
    return folder, verb(folder, "audit", west, "--conf", west.parent / "conf.toml")


@pytest.fixture(scope="module")
def both(
    verb: Verb, west: Path, audited_slice: tuple[Path, Ended], tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, Ended]:
    """The slice's cluster, and then the other one in the same lake."""
    folder = tmp_path_factory.mktemp("both")
    shutil.copytree(audited_slice[0] / "lake", folder / "lake")
    return folder, verb(folder, "audit", west, "--conf", west.parent / "conf.toml")


def counted(lake: Path, spec: TableSpec) -> dict[str, Counter[bytes]]:
    """How often each row of a cluster stands in a table, by cluster."""
    rows = Counter(row_texts(lake, spec))
    return {
        cluster: Counter({row: count for row, count in rows.items() if b'"cluster_id":"%b"' % cluster.encode() in row})
        for cluster in (EAST_ID, WEST)
    }


def told(report: dict[str, Any]) -> dict[str, Any]:
    """Return a report without the lake, earlier runs, and files that are no logs: those are of no cluster."""
    fields = {name: value for name, value in report.items() if name != "provenance"}
    fields["problems"] = [text for text in report["problems"] if "not a broker log" not in text]
    return orjson.loads(
        orjson.dumps(fields).replace(b'"is_new":false', b'"is_new":null').replace(b'"is_new":true', b'"is_new":null')
    )


def test_each_cluster_has_the_rows_of_a_lake_of_its_own(
    audited_slice: tuple[Path, Ended], alone: tuple[Path, Ended], both: tuple[Path, Ended]
):
    found = {spec.full_name: counted(both[0] / "lake", spec) for spec in COMPARED}
    for cluster, (folder, _) in ((EAST_ID, audited_slice), (WEST, alone)):
        expected = {spec.full_name: counted(folder / "lake", spec)[cluster] for spec in COMPARED}
        assert sum(map(len, expected.values())) > 10_000
        assert [name for name in expected if found[name][cluster] != expected[name]] == []


def test_a_cluster_that_lacks_a_broker_leaves_the_other_clean(verb: Verb, both: tuple[Path, Ended]):
    folder, ended = both
    assert (ended.code, ended.report["verdict"]) == (3, "inconclusive")
    # An audit reports the cluster whose logs it was given.
    verdicts = {part["cluster_id"]: part["verdict"] for part in ended.report["clusters"]}
    assert verdicts == {WEST: "inconclusive"}
    whole = verb(folder, "report")
    assert (whole.code, whole.report["verdict"]) == (3, "inconclusive")
    verdicts = {part["cluster_id"]: part["verdict"] for part in whole.report["clusters"]}
    assert verdicts == {EAST_ID: "clean", WEST: "inconclusive"}
    assert all(reason.startswith(f"cluster {WEST}: ") for reason in whole.report["inconclusive"])
    assert "broker 3 of cluster west" in whole.report["inconclusive"][0]
    # What the first run had replayed is not replayed again.
    assert [line.strip() for line in ended.err.splitlines() if "(unchanged)" in line and "beginning" not in line]


def test_report_and_gate_of_one_cluster(
    verb: Verb, audited_slice: tuple[Path, Ended], alone: tuple[Path, Ended], both: tuple[Path, Ended]
):
    folder, _ = both
    for name, (_, own) in ((EAST_ID, audited_slice), (WEST, alone)):
        ended = verb(folder, "report", "--cluster", name, report=f"report-{name}")
        assert ended.code == own.code
        assert told(ended.report) == told(own.report)
    # By the id that its lines tell, too.
    assert verb(folder, "gate", "--cluster", WEST_ID).code == verb(folder, "gate", "--cluster", WEST).code == 3
    assert verb(folder, "gate", "--cluster", EAST_ID).code == 0
    every = verb(folder, "gate")
    assert every.code == 3
    assert [f"cluster {EAST_ID}: clean", f"cluster {WEST}: inconclusive"] == every.out.splitlines()[1:3]
    wrong = verb(folder, "gate", "--cluster", "north")
    assert wrong.code == 2
    assert f"has no cluster north; give --cluster with one of {EAST_ID}, {WEST}" in wrong.complaints[0]


def test_questions_about_brokers_name_the_cluster(verb: Verb, both: tuple[Path, Ended]):
    folder, _ = both
    for question in (
        ["whatif"],
        ["compare", "..", ".."],
        ["trace", "write", "clicks"],
        ["trace", "partition", "clicks-0"],
    ):
        asked = verb(folder, *question)
        assert asked.code == 2, question
        assert f"{EAST_ID}, {WEST}" in asked.complaints[0]
        assert "--cluster" in asked.complaints[0]
        assert verb(folder, *question, "--cluster", WEST).code == 0


def test_a_name_for_two_clusters_stores_nothing(verb: Verb, west: Path, tmp_path: Path):
    conf = tmp_path / "conf.toml"
    conf.write_text(f'[ingest.clusters]\n"{west}" = "one"\n"{SLICE}" = "one"\n')
    ended = verb(tmp_path, "ingest", west, SLICE, "--conf", conf)
    assert ended.code == 2
    assert all(word in ended.complaints[0] for word in (str(west), str(SLICE), EAST_ID, WEST_ID, "one"))
    assert verb(tmp_path, "gate").code == 2

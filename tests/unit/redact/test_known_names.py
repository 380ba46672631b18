"""Names are read off a lake's tables wherever they stand, and a bundle has none of them; without Spark."""

import hashlib
import io
import zipfile
from functools import partial
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from highwater.pipelines.lake.lake import Lake
from highwater.pipelines.redact.known_names import build_pseudonyms
from highwater.pipelines.redact.text import Redactor
from highwater.pipelines.redact.values import redact_report, redact_table
from highwater.pipelines.report.bundle import write_bundle
from highwater.schemas.gold import REQUEST_PHASES
from highwater.schemas.silver import BROKER_CONFIGS, FETCH_REQUESTS, REQUESTS
from highwater.schemas.table import TableSpec
from tests.unit.report import sample
from tests.unit.report.rows import at

KEY = b"0123456789abcdef"
CLUSTER = "W-CQybfSRP-OafW0EWRB0Q"


def row(spec: TableSpec, **changes: Any) -> dict[str, Any]:
    """A row that has what it must have."""
    return {field.name: _value(field.type) for field in spec.arrow_schema if not field.nullable} | changes


def _value(kind: pa.DataType) -> Any:
    if pa.types.is_string(kind):
        return "x"
    if pa.types.is_list(kind):
        return []
    return at(0) if pa.types.is_timestamp(kind) else False if pa.types.is_boolean(kind) else 0


def element(kind: pa.DataType, **values: Any) -> dict[str, Any]:
    """A struct of a list, with what it must have."""
    return {field.name: _value(field.type) if not field.nullable else None for field in kind.value_type} | values


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    made = Lake(None, tmp_path / "lake")  # type: ignore[arg-type]
    asked = FETCH_REQUESTS.arrow_schema.field("partitions").type
    rows = [
        (
            FETCH_REQUESTS,
            [
                row(
                    FETCH_REQUESTS,
                    cluster_id=CLUSTER,
                    client_id="billing",
                    connection="10.1.1.1:9092-10.2.2.2:41-7",
                    partitions=[element(asked, topic="invoices"), element(asked, topic="refunds")],
                )
            ],
        ),
        (
            REQUESTS,
            [
                row(
                    REQUESTS,
                    group_id="g-audit",
                    transactional_id="tx-1",
                    principal="User:carol",
                    connection="[fd00::1]:9-[fd00::2]:8-1",
                )
            ],
        ),
        (
            BROKER_CONFIGS,
            [
                row(BROKER_CONFIGS, scope="broker", entity="1", key=key, value=value)
                for key, value in (
                    ("advertised.listeners", "[PLAINTEXT://kafka-1.corp:9092, SSL://kafka-1-ssl.corp:9093]"),
                    ("controller.quorum.voters", "1@node-1.corp:9093,2@10.3.3.3:9093"),
                    ("zookeeper.connect", "null"),
                    ("broker.rack", "zone-a"),
                )
            ]
            + [row(BROKER_CONFIGS, scope="topic", entity="archive", key="cleanup.policy", value="compact")],
        ),
        (
            REQUEST_PHASES,
            [
                row(
                    REQUEST_PHASES,
                    cluster_id=CLUSTER,
                    client_id="billing",
                    connection="10.1.1.1:9092-10.2.2.2:41-7",
                    arrival_time=at(ms),
                )
                for ms in (0, 1000, 2000)
            ],
        ),
    ]
    made.create([spec for spec, _ in rows])
    for spec, those in rows:
        made.replace(spec, pa.Table.from_pylist(those, spec.arrow_schema), stamp="run")
    return made


NAMES = {
    *("invoices", "refunds", "archive", "billing", "g-audit", "tx-1", "User:carol", "carol", CLUSTER),
    *("kafka-1.corp", "kafka-1-ssl.corp", "node-1.corp", "zone-a"),
}


def test_names_are_known_from_lists_settings_and_principals(lake: Lake) -> None:
    known = build_pseudonyms(lake, KEY).known
    assert {name for name in known if name != "x"} == NAMES
    kinds = {name: known[name].rsplit("-", 1)[0] for name in NAMES - {CLUSTER}}
    assert kinds["invoices"] == kinds["refunds"] == kinds["archive"] == "topic"
    assert (kinds["billing"], kinds["g-audit"], kinds["tx-1"]) == ("client", "group", "transactional-id")
    assert (kinds["User:carol"], kinds["carol"], kinds["node-1.corp"]) == ("User:principal", "principal", "host")


def test_a_bundle_is_whole_and_has_no_name(lake: Lake, tmp_path: Path) -> None:
    redactor = Redactor(build_pseudonyms(lake, KEY))
    for number in (1, 2):
        write_bundle(
            redact_report(sample.audited(), redactor),
            lake,
            tmp_path / f"{number}.zip",
            at(500),
            at(2000),
            partial(redact_table, redactor=redactor),
        )
    assert (tmp_path / "1.zip").read_bytes() == (tmp_path / "2.zip").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["1.zip", "2.zip", "lake"]
    with zipfile.ZipFile(tmp_path / "1.zip") as archive:
        assert archive.testzip() is None
        manifest = orjson.loads(archive.read("manifest.json"))
        for file in manifest["files"]:
            content = archive.read(file["name"])
            assert (file["bytes"], file["sha256"]) == (len(content), hashlib.sha256(content).hexdigest())
        phases = pq.read_table(io.BytesIO(archive.read("tables/gold.request_phases.parquet")))
    assert [file["rows"] for file in manifest["files"] if "rows" in file] == [1]
    (shown,) = phases.to_pylist()
    assert shown["arrival_time"] == at(1000)
    assert shown["client_id"] == redactor.pseudonyms.known["billing"]
    assert shown["connection"].endswith("-7")
    assert "10.1.1.1" not in shown["connection"]


def test_a_bundle_that_fails_leaves_what_was_there(lake: Lake, tmp_path: Path) -> None:
    def fail(table: pa.Table) -> pa.Table:
        raise OSError("the disk is full")

    path = tmp_path / "b.zip"
    path.write_text("older")
    with pytest.raises(OSError, match="full"):
        write_bundle(sample.audited(), lake, path, None, None, fail)
    assert path.read_text() == "older"
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["b.zip", "lake"]

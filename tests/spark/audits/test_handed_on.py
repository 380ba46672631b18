"""What is handed on of an audit of the slice: other formats, and nothing of its names where they are replaced."""

from __future__ import annotations

import gzip
import io
import json
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path

import orjson
import pyarrow.parquet as pq
import pytest

from highwater.pipelines.lake.lake import Lake
from highwater.pipelines.report.bundle import BUNDLED
from highwater.schemas import silver
from tests.spark.audits.conftest import Verb
from tests.unit.report.test_sarif import VALIDATOR
from tests.verbs import Ended

#: What is Kafka's own, nobody's, or no name.
NOBODYS = re.compile(
    r"__.*|broker-\d+-.*|raft-client-\d+|rdkafka|AddPartitionsManager.*|User:ANONYMOUS|A{21}[AQ]|null|\d+"
)


@pytest.fixture(scope="module")
def names(slice_lake: Lake) -> set[str]:
    """Every name that the slice's tables have, read the plain way."""
    told: set[str] = set()
    for spec, *columns in (
        (silver.TOPICS, "cluster_id", "topic", "topic_id"),
        (silver.LEADER_AND_ISR, "topic", "topic_id"),
        (silver.REQUESTS, "client_id", "group_id", "transactional_id", "principal"),
        (silver.PRODUCE_REQUESTS, "client_id", "transactional_id"),
        (silver.FETCH_REQUESTS, "client_id"),
    ):
        rows = slice_lake.rows(spec, *columns)
        told |= {value for column in columns for value in rows[column].to_pylist() if value}
    kept = {name for name in told if not NOBODYS.fullmatch(name)}
    assert {"orders", "clicks", "payments", "p6", "tx-kraft39-faults"} < kept
    return kept


def texts(archive: zipfile.ZipFile) -> Iterator[tuple[str, str]]:
    """Members as text: Parquet as its values, the page without its own style and script."""
    for member in archive.namelist():
        content = archive.read(member)
        if member.endswith(".parquet"):
            yield member, json.dumps(pq.read_table(io.BytesIO(content)).to_pylist(), default=str, ensure_ascii=False)
            yield f"{member} as bytes", content.decode("latin-1")
        elif member.endswith(".html"):
            yield member, re.sub(r"(?s)<style>.*?</style>|<script>.*?</script>", "", content.decode())
        else:
            yield member, content.decode()


def test_a_redacted_bundle_has_no_name_anywhere(
    verb: Verb, audited_slice: tuple[Path, Ended], names: set[str], tmp_path: Path
) -> None:
    folder, _ = audited_slice
    (tmp_path / "key").write_text("0123456789abcdef")
    out = tmp_path / "bundle.zip"
    ended = verb(folder, "bundle", "--out", out, "--redact", "--redact-key-file", tmp_path / "key")
    assert ended.code == 0, ended.err
    sought = re.compile(rf"(?<![A-Za-z0-9_])(?:{'|'.join(map(re.escape, names))})(?![A-Za-z0-9_])")
    with zipfile.ZipFile(out) as archive:
        manifest = orjson.loads(archive.read("manifest.json"))
        members = {f"tables/{spec.full_name}.parquet" for spec in BUNDLED} & set(archive.namelist())
        assert {"tables/gold.violations.parquet", "tables/gold.delayed_operations.parquet"} < members
        assert {file["name"] for file in manifest["files"]} == set(archive.namelist()) - {"manifest.json"}
        assert manifest["redacted"] is True
        for member, text in texts(archive):
            # Two letters and a digit are somewhere in any compressed bytes.
            found = {name for name in sought.findall(text) if len(name) > 3 or not member.endswith("bytes")}
            assert found == set(), member
        report = orjson.loads(archive.read("report.json"))
        evidence = pq.read_table(io.BytesIO(archive.read("tables/gold.evidence.parquet"))).to_pylist()
    assert any('"clientId":"client-' in row["text"] for row in evidence)
    assert {row["topic"] for row in report["observations"]} <= {row["topic"] for row in report["topics"]}


def test_a_report_with_the_same_key_calls_names_the_same(
    verb: Verb, audited_slice: tuple[Path, Ended], names: set[str], tmp_path: Path
) -> None:
    folder, whole = audited_slice
    (tmp_path / "key").write_text("0123456789abcdef")
    redacted = [
        verb(folder, "report", "--redact", "--redact-key-file", tmp_path / "key", report=name) for name in ("r1", "r2")
    ]
    assert [ended.code for ended in redacted] == [whole.code] * 2
    assert redacted[0].report == redacted[1].report
    assert redacted[0].out == redacted[1].out
    assert redacted[0].report["operations"]["produce"]["by_cause"] == whole.report["operations"]["produce"]["by_cause"]
    assert len(redacted[0].report["observations"]) == len(whole.report["observations"])
    files = {path.name for path in redacted[0].report_dir.iterdir()}
    assert files == {"report.json", "report.md", "report.html", "report.sarif"}
    other = verb(folder, "report", "--redact", report="r3")
    assert other.report["topics"] != redacted[0].report["topics"]
    for name in names:
        assert not re.search(rf"(?<![A-Za-z0-9_]){re.escape(name)}(?![A-Za-z0-9_])", other.out)


def test_the_slices_sarif_is_valid_and_has_the_bytes_of_its_lines(
    verb: Verb, audited_slice: tuple[Path, Ended]
) -> None:
    folder, whole = audited_slice
    ended = verb(folder, "report", "--format", "sarif", report="s")
    document = orjson.loads(ended.out)
    assert [error.message for error in VALIDATOR.iter_errors(document)] == []
    (run,) = document["runs"]
    incidents = [result for result in run["results"] if result["ruleId"].startswith("incident/")]
    assert len(incidents) == len(whole.report["incidents"]) > 0
    findings = [result for result in run["results"] if not result["ruleId"].startswith("incident/")]
    notes = [result for result in findings if result["level"] == "note"]
    assert len(notes) == len(whole.report["observations"]) > 0
    for result in notes:
        place = result["locations"][0]["physicalLocation"]
        region = place["region"]
        file = next(
            source["file"]
            for source in whole.report["provenance"]["inputs"]
            if source["file"].endswith(place["artifactLocation"]["uri"])
        )
        lines = _content(Path(file)).split(b"\n")
        line = lines[region["startLine"] - 1]
        assert sum(map(len, lines[: region["startLine"] - 1])) + region["startLine"] - 1 == region["byteOffset"]
        assert len(line) == region["byteLength"]
        assert region["snippet"]["text"][:500].encode() in line


def _content(path: Path) -> bytes:
    return gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()


def test_a_bundle_is_refused_where_there_is_no_audit_or_no_place(
    verb: Verb, audited_slice: tuple[Path, Ended], tmp_path: Path
) -> None:
    folder, _ = audited_slice
    assert verb(folder, "bundle", "--out", tmp_path).complaints == [
        f"highwater: {tmp_path}: is a folder; name the archive with --out, for example highwater-bundle.zip"
    ]
    ended = verb(folder, "bundle", "--out", tmp_path / "none" / "b.zip")
    assert ended.code == 2
    assert "cannot be written" in ended.complaints[0]
    (tmp_path / "key").write_text("short")
    ended = verb(folder, "report", "--redact", "--redact-key-file", tmp_path / "key", report="x")
    assert ended.code == 2
    assert "too few for a key" in ended.complaints[0]

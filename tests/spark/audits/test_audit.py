"""`highwater audit` on the bundled slice of a real corpus."""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import orjson

from highwater.pipelines.report.cubes.parts import Cubes
from highwater.pipelines.rules.registry import BY_ID
from highwater.schemas.gold import CLASSES
from tests.crash.lakes import digest, tables
from tests.spark.audits.conftest import Verb
from tests.unit.report import ranges
from tests.verbs import SLICE, Ended

Audited = tuple[Path, Ended]


def test_the_slice_is_clean_and_its_replay_is_close(audited_slice: Audited):
    _, ended = audited_slice
    assert ended.code == 0, ended.err
    report = ended.report
    assert (report["schema_version"], report["verdict"], report["tier"]) == (1, "clean", "T1")
    produce = report["operations"]["produce"]
    assert produce["observed"] > 3000
    assert produce["contradicted"] == 0
    assert produce["within_ms"]["5"] >= 0.997
    assert produce["within_ms"]["1"] >= 0.995
    assert produce["interval_width_ms"]["p50"] <= 3
    assert produce["interval_width_ms"]["p99"] <= 60
    classes = ("explained", "jitter", "late", "unobservable", "contradicted")
    assert sum(produce[name] for name in classes) == produce["observed"]


def test_fetches_are_replayed_closely(audited_slice: Audited):
    fetch = audited_slice[1].report["operations"]["fetch"]
    assert fetch["observed"] > 3000
    assert fetch["contradicted"] == 0
    assert fetch["cause_known"] >= 0.99
    assert fetch["parked"]["observed"] > 1000
    assert fetch["parked"]["within_ms"]["5"] >= 0.99
    classes = ("explained", "jitter", "late", "unobservable", "contradicted")
    for part in (fetch, fetch["parked"]):
        assert sum(part[name] for name in classes) == part["observed"]
    assert sum(group["observed"] for group in fetch["groups"]) == fetch["observed"]
    assert sum(group["parked"] for group in fetch["groups"]) == fetch["parked"]["observed"]
    assert {group["reader"] for group in fetch["groups"]} == {"follower", "consumer"}


def test_requests_to_coordinators_are_replayed_closely(audited_slice: Audited):
    report = audited_slice[1].report
    coordinator = report["operations"]["coordinator"]
    assert coordinator["observed"] > 0
    assert coordinator["contradicted"] == 0
    assert coordinator["within_ms"]["5"] >= 0.98
    assert sum(api["observed"] for api in coordinator["by_api"].values()) == coordinator["observed"]
    assert sum(row["operations"] for row in report["blame_coordinator"]) == coordinator["succeeded"]
    assert {api.lower() for api in coordinator["by_api"]} <= set(report["latency"])


def test_brokers_are_known_from_their_logs_alone(audited_slice: Audited):
    brokers = audited_slice[1].report["brokers"]
    assert [broker["broker_id"] for broker in brokers] == [1, 2, 3]
    assert {broker["kafka_version"] for broker in brokers} == {"3.9.1"}
    assert {broker["mode"] for broker in brokers} == {"kraft"}
    assert {broker["config"]["replica.lag.time.max.ms"] for broker in brokers} == {"6000"}


def test_the_pause_of_broker_2_is_blamed_on_it(audited_slice: Audited):
    blame = audited_slice[1].report["blame"]
    assert blame[0]["broker_id"] == 2
    assert blame[0]["singled_out"]


def test_nearly_every_line_is_understood(audited_slice: Audited):
    coverage = audited_slice[1].report["coverage"]
    assert coverage["share_parsed"] >= 0.995
    assert coverage["lines"] == coverage["parsed"] + coverage["unparsed"]


def test_every_rule_is_asked_and_none_objects(audited_slice: Audited):
    report = audited_slice[1].report
    assert {rule["rule_id"] for rule in report["rules"]} == set(BY_ID)
    assert report["violations"] == report["open_cases"] == []
    assert not any(rule["cases"] for rule in report["rules"])
    judged = {rule["rule_id"]: rule["checked"] for rule in report["rules"]}
    assert judged["committed-data-lost"] > 3000
    assert judged["two-leaders-one-epoch"] > 0


def test_what_an_observation_says_stands_in_the_file(audited_slice: Audited):
    shown = [line for one in audited_slice[1].report["observations"] for line in one["evidence"]]
    assert shown
    for line in shown:
        with gzip.open(line["file"], "rb") as file:
            raw = file.read()[line["byte_offset"] :].split(b"\n", 1)[0].decode()
        assert line["text"][:200] in raw


def test_results_on_stdout_progress_on_stderr(audited_slice: Audited):
    _, ended = audited_slice
    assert "clean" in ended.out.lower()
    assert "replay" in ended.err
    assert "replay  " not in ended.out
    assert "spark WARN" not in ended.out


def test_stderr_has_our_progress_and_nothing_else(audited_slice: Audited):
    _, ended = audited_slice
    # The folder holds the list of faults, too.
    ours = re.compile(r"[a-zA-Z ]{32} +\d+\.\d s|  .+|wrote .+|warning: \S+: 1 file is not a broker log: other text")
    assert [line for line in ended.err.splitlines() if not ours.fullmatch(line)] == []


def test_markdown_says_the_same(audited_slice: Audited):
    _, ended = audited_slice
    assert "clean" in (ended.report_dir / "report.md").read_text()


def test_the_same_again_changes_nothing(audited_slice: Audited, verb: Verb, tell: Callable[[str], None]):
    folder, first = audited_slice
    before = digest(folder / "lake")
    second = verb(folder, "audit", SLICE, report="again")
    assert second.code == first.code, second.err
    assert "0 new" in second.err
    tell(f"nothing new: {len(before)} files of {len(tables(folder / 'lake'))} tables")
    assert digest(folder / "lake") == before
    assert second.out == first.out
    assert _lasting(second.report) == _lasting(first.report)


def _lasting(report: dict[str, Any]) -> dict[str, Any]:
    """A report without the version of the ledger, which took its row after the first report was written."""
    versions = report["provenance"]["delta_versions"]
    return report | {"provenance": report["provenance"] | {"delta_versions": {**versions, "gold.runs": None}}}


def test_a_window_restricts_what_is_reported(audited_slice: Audited, verb: Verb):
    folder, first = audited_slice
    bounds = "2026-11-20T15:34:00", "2026-11-20T15:34:04"
    quiet = verb(folder, "report", "--from", bounds[0], "--until", bounds[1], report="window")
    assert quiet.code == 0, quiet.err
    observed = quiet.report["operations"]["produce"]["observed"]
    assert 0 < observed < first.report["operations"]["produce"]["observed"]
    cubes = Cubes.model_validate(page_data(first)["detail"]["cubes"])
    start = (int(datetime.fromisoformat(f"{bounds[0]}Z").timestamp()) - cubes.start_s) // cubes.interval_s
    counts = ranges.operations(cubes, "produce", start, start + 4 // cubes.interval_s)[None].counts
    assert {name: counts[name] for name in ("observed", "with_error", *CLASSES)} == {
        name: quiet.report["operations"]["produce"][name] for name in ("observed", "with_error", *CLASSES)
    }


def page_data(ended: Ended) -> dict[str, Any]:
    """Return the data of the page's scripts, with names in place of their numbers."""
    page = (ended.report_dir / "report.html").read_text(encoding="utf-8")
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert found
    data: dict[str, Any] = orjson.loads(found[1])
    for cells in data["detail"]["cubes"].values():
        for name, column in cells.items() if isinstance(cells, dict) else ():
            if isinstance(column, dict) and "names" in column:
                cells[name] = [column["names"][place] for place in column["at"]]
    return data


def test_the_page_tells_what_happened(audited_slice: Audited):
    _, ended = audited_slice
    assert (ended.report_dir / "report.html").stat().st_size < 3_000_000
    cluster = page_data(ended)["detail"]["cluster"]
    (restart,) = cluster["restarts"]
    assert (restart["broker_id"], restart["ending"]) == (2, "found_gone")
    assert restart["isr_lost"] == restart["isr_back"] > 0
    assert {row["state"] for row in cluster["unavailable"]} == {"under_min_isr"}
    longest = max(cluster["stories"], key=lambda story: story["wait_ms"])
    assert longest["closing_replica"] == 2
    assert '"correlationId":' in longest["steps"][-1]["text"] or '"correlationId":' in longest["steps"][-2]["text"]
    assert all(any(step.get("text") for step in story["steps"]) for story in cluster["stories"])


def test_tables_lists_the_lake(audited_slice: Audited, verb: Verb):
    folder, _ = audited_slice
    ended = verb(folder, "tables")
    assert ended.code == 0, ended.err
    assert "delayed_operations" in ended.out


def test_the_gate_passes_and_writes_nothing(audited_slice: Audited, verb: Verb):
    folder, _ = audited_slice
    before = sorted((folder / "lake").rglob("*.json"))
    ended = verb(folder, "gate", "--from", "2026-11-20T15:00", "--until", "2026-11-20T16:00")
    assert ended.code == 0, ended.err
    verdict, *happened, new, newest = ended.out.splitlines()
    assert verdict == "gate: clean, from 2026-11-20T15:00:00.000Z until 2026-11-20T16:00:00.000Z"
    assert [line.partition(":")[0] for line in happened] == ["happened"] * len(happened)
    # The worst effect is first, its cause is not.
    assert "67 acks=all produces were refused" in happened[0]
    assert new == "new since the run before: no earlier run to compare with"
    assert newest.startswith("newest line")
    assert sorted((folder / "lake").rglob("*.json")) == before

"""The verbs, asked of a lake that was cut from real ones: unclean28 (sessions-1) and kip101 (ledger-0)."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from highwater.jobs import cli
from highwater.jobs.exit_codes import ExitCode
from highwater.pipelines.inquiry.partition import find_cluster, read_partition_facts
from highwater.pipelines.inquiry.survivors import find_survivors
from highwater.pipelines.lake.contents import find_tables
from highwater.pipelines.lake.reader import LakeReader
from tests.bench import answers

LAKE = Path(__file__).parents[2] / "data" / "lake"
#: First lines that tell of the epochs in which broker 2 (unclean28) and broker 3 (kip101) led.
UNCLEAN = "2026-11-20T15:54:47.783"
KIP_101 = "2026-11-20T15:40:30.047"
OF_UNCLEAN = ("--cluster", "ASBFCKqYSOSQqJfr97Jyhg")


def ask(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, Any]:
    code = cli.run([*arguments, "--lake", str(LAKE), "--format", "json"])
    printed = capsys.readouterr()
    assert printed.out, printed.err
    return code, json.loads(printed.out)


def replicas(answer: dict[str, Any]) -> dict[int, dict[str, Any]]:
    return {row["replica"]: row for row in answer["tables"][0]["rows"]}


# --------------------------------------------------------------------- survivors


def test_an_unclean_election_is_predicted_to_the_record(capsys: pytest.CaptureFixture[str]) -> None:
    """README of the corpora: 149 acks=all records of sessions-1 were lost, at offsets from 115 on."""
    code, answer = ask(capsys, "survivors", "sessions-1", "--at", UNCLEAN)
    assert code == ExitCode.CLEAN
    of_broker = replicas(answer)
    assert of_broker[2]["log_end_min"] == of_broker[2]["log_end_max"] == 115
    assert (of_broker[2]["lost_acks_all"], of_broker[2]["perhaps_acks_all"]) == (149, 0)
    assert (of_broker[1]["lost_acks_all"], of_broker[1]["perhaps_acks_all"]) == (0, 0)
    assert (of_broker[1]["in_isr"], of_broker[2]["in_isr"]) == (True, False)


def test_what_is_not_known_yet_is_left_open(capsys: pytest.CaptureFixture[str]) -> None:
    """Before it is started anew, broker 2 may yet append the answer of its last fetch: one record."""
    _, answer = ask(capsys, "survivors", "sessions-1", "--at", "2026-11-20T15:54:45")
    broker = replicas(answer)[2]
    assert (broker["log_end_min"], broker["log_end_max"]) == (115, 116)
    assert (broker["lost_acks_1"], broker["perhaps_acks_1"]) == (76, 1)
    assert any("it cannot be shown" in sentence for sentence in answer["sentences"])


def test_kip_101_is_predicted_of_the_replica_that_truncated(capsys: pytest.CaptureFixture[str]) -> None:
    _, answer = ask(capsys, "survivors", "ledger-0", "--at", KIP_101)
    lost = {broker: row["lost_acks_all"] for broker, row in replicas(answer).items()}
    assert lost == {1: 0, 2: 0, 3: 1}
    assert any("broker 3" in sentence and "offset 118" in sentence for sentence in answer["sentences"])


def test_the_last_answer_is_the_one_that_a_high_watermark_shows(capsys: pytest.CaptureFixture[str]) -> None:
    """0.10.2 logs no answers; the leader's high watermark had passed offset 118 before it died."""
    _, answer = ask(capsys, "survivors", "ledger-0", "--at", KIP_101)
    assert any(
        step["what"] == "The last acks=all produce that is answered: offset 118, epoch 0." for step in answer["steps"]
    )


def test_a_lost_record_is_told_apart_from_what_an_election_would_lose(capsys: pytest.CaptureFixture[str]) -> None:
    _, answer = ask(capsys, "survivors", "ledger-0", "--at", "2026-11-20T15:40:31")
    lost = "Lost before, and not counted above: 1 record acknowledged with acks=all (offset 118), which the log of"
    assert any(sentence.startswith(lost) for sentence in answer["sentences"])


def test_after_the_election_it_is_told_that_the_records_went_before() -> None:
    reader = LakeReader(LAKE, find_tables(LAKE))
    cluster_id = find_cluster(reader, "sessions", 1, None)
    result = find_survivors(read_partition_facts(reader, cluster_id, "sessions", 1, None))
    assert result.gone.surely_count == 149
    assert {candidate.of_all.surely_count for candidate in result.candidates} == {0}


def test_partitions_without_a_leader_are_told_unasked(capsys: pytest.CaptureFixture[str]) -> None:
    code, answer = ask(capsys, "survivors")
    assert code == ExitCode.CLEAN
    assert answer["title"].startswith("sessions-1 at the end of the logs")
    code, answer = ask(capsys, "survivors", "--at", "2026-11-20T15:40:00")
    assert (code, answer["tables"]) == (ExitCode.CLEAN, [])


def test_a_time_without_lines_cannot_be_shown(capsys: pytest.CaptureFixture[str]) -> None:
    code, answer = ask(capsys, "survivors", "sessions-1", "--at", "2026-11-20T15:00")
    assert code == ExitCode.INCONCLUSIVE
    assert "do not mention this partition" in answer["sentences"][0]


@pytest.fixture
def default_levels(tmp_path: Path) -> Path:
    """The lake as logs at default levels would have made it: no requests, no lines below INFO."""
    lake = tmp_path / "lake"
    shutil.copytree(LAKE, lake)
    logged_below = ("produce_requests", "fetch_requests", "replica_fetches", "appends", "high_watermarks")
    for table in (*(f"silver/{name}" for name in logged_below), "gold/delayed_operations", "gold/request_phases"):
        log = lake / table / "_delta_log" / f"{0:020}.json"
        actions = [line for line in log.read_text(encoding="utf-8").splitlines() if '"add"' not in line]
        log.write_text("\n".join(actions), encoding="utf-8")
    return lake


def test_at_default_levels_nothing_is_made_up(default_levels: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Broker 2 followed; how far it came is in no line, so it may have everything that its leader has."""
    arguments = ["survivors", "sessions-1", "--at", UNCLEAN, "--lake", str(default_levels), "--format", "json"]
    assert cli.run(arguments) == ExitCode.CLEAN
    answer = json.loads(capsys.readouterr().out)
    broker = replicas(answer)[2]
    assert (broker["log_end_min"], broker["log_end_max"], broker["lost_acks_all"]) == (0, None, None)
    assert any("What was acknowledged cannot be shown" in sentence for sentence in answer["sentences"])
    assert cli.run(["whatif", "--lake", str(default_levels)]) == ExitCode.INCONCLUSIVE
    assert cli.run(["trace", "write", "sessions-1", "--lake", str(default_levels)]) == ExitCode.INCONCLUSIVE
    assert "No request log of this time is in the lake" in capsys.readouterr().out


def test_no_produce_is_not_no_request_log(tmp_path: Path) -> None:
    """A partition to which nobody wrote, as most of __consumer_offsets: request logs are there, and nothing in them."""
    lake = tmp_path / "lake"
    shutil.copytree(LAKE, lake)
    log = lake / "gold" / "delayed_operations" / "_delta_log" / f"{0:020}.json"
    log.write_text("\n".join(line for line in log.read_text(encoding="utf-8").splitlines() if '"add"' not in line))
    reader = LakeReader(lake, find_tables(lake))
    facts = read_partition_facts(reader, find_cluster(reader, "ledger", 0, None), "ledger", 0, None)
    assert (facts.acked, facts.has_answers) == ((), True)


def test_a_column_that_no_file_has_yet_is_null(tmp_path: Path) -> None:
    """As `maintain upgrade` leaves a table to which a version added one."""
    lake = tmp_path / "lake"
    shutil.copytree(LAKE, lake)
    log = lake / "bronze" / "log_files" / "_delta_log" / f"{0:020}.json"
    actions = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    schema = next(action["metaData"] for action in actions if "metaData" in action)
    fields = json.loads(schema["schemaString"])
    added = {"type": "array", "elementType": "integer", "containsNull": True}
    fields["fields"].append({"name": "added", "type": added, "nullable": True, "metadata": {}})
    schema["schemaString"] = json.dumps(fields)
    log.write_text("\n".join(map(json.dumps, actions)), encoding="utf-8")
    rows = LakeReader(lake, find_tables(lake)).rows("SELECT path, added FROM bronze_log_files")
    assert rows
    assert {row["added"] for row in rows} == {None}


# ------------------------------------------------------------------------- trace


def test_a_lost_write_is_told_with_where_it_was(capsys: pytest.CaptureFixture[str]) -> None:
    span = ("--from", "2026-11-20T15:54:37.3", "--until", "2026-11-20T15:54:37.4")
    code, answer = ask(capsys, "trace", "write", "sessions-1", "--client", "w1", *span)
    (row,) = answer["tables"][0]["rows"]
    assert code == ExitCode.CLEAN
    assert (row["offset_start"], row["held_by"], row["not_held_by"]) == (340, [], [1, 2])
    assert answer["steps"][0]["file"] == "unclean28/broker-1/logs/kafka-request.log.gz"


def test_a_write_that_stands_is_in_every_log(capsys: pytest.CaptureFixture[str]) -> None:
    span = ("--from", "2026-11-20T15:55:30", "--until", "2026-11-20T15:55:31")
    _, answer = ask(capsys, "trace", "write", "sessions", "--client", "w1", *span)
    assert all((row["held_by"], row["not_held_by"]) == ([1, 2], []) for row in answer["tables"][0]["rows"])


def test_a_write_that_was_never_answered_names_what_was_searched(capsys: pytest.CaptureFixture[str]) -> None:
    code, answer = ask(capsys, "trace", "write", "sessions-1", "--client", "nobody")
    assert code == ExitCode.INCONCLUSIVE
    assert answer["sentences"][0].startswith("No such produce was answered")
    assert any(sentence.startswith("Searched: broker 1") for sentence in answer["sentences"])


def test_a_write_that_was_perhaps_refused_is_not_told_to_be_lost(capsys: pytest.CaptureFixture[str]) -> None:
    """0.10.2 logs no answers. Client's history: offset 118 was acknowledged, 119 of the zombie leader 2 timed out."""
    span = ("--from", "2026-11-20T15:39:52.85", "--until", "2026-11-20T15:41:10")
    _, answer = ask(capsys, "trace", "write", "ledger-0", *span)
    shown = {(row["epoch"], row["offset_start"]): row["acknowledged"] for row in answer["tables"][0]["rows"]}
    assert shown == {(0, 118): True, (2, 118): True, (1, 119): None}
    assert "1 is lost: no replica is known to hold it, and some are known not to." in answer["sentences"]
    assert answer["sentences"][-1].startswith("Of 1 no line shows whether the answer was an error")


def test_what_a_file_holds_has_no_time(capsys: pytest.CaptureFixture[str]) -> None:
    """It stood at the finding's, behind lines that are later."""
    _, answer = ask(capsys, "trace", "finding", "0946c89c")
    times = [step["time"] for step in answer["steps"] if step["time"] is not None]
    assert times == sorted(times)
    shown = [step["what"] for step in answer["steps"] if step["time"] is not None]
    assert shown[1:3] == ["Broker 1 moves its high watermark: 119.", "Broker 3 cuts its log to 118."]
    assert not any(what.startswith("A line of") for what in shown)
    assert [step["what"] for step in answer["steps"] if step["time"] is None] == [
        f"The log of broker {broker} holds a batch at offset 118, 1 record." for broker in (1, 2, 3)
    ]
    assert cli.run(["trace", "finding", "0946c89c", "--lake", str(LAKE)]) == ExitCode.CLEAN
    assert "\nno time       The log of broker 1 holds a batch at offset 118, 1 record.\n" in capsys.readouterr().out


def test_an_election_says_how_and_when(capsys: pytest.CaptureFixture[str]) -> None:
    _, answer = ask(capsys, "trace", "partition", "ledger-0")
    told = [step["what"] for step in answer["steps"] if "lost leadership" in step["what"]]
    assert told[:2] == [
        "Broker 1 lost leadership (it failed); broker 2 is elected from the ISR.",
        "Broker 2 lost leadership (it failed); broker 3 is elected from the ISR, at 15:40:30.053.",
    ]


def test_one_of_several_requests_is_chosen(capsys: pytest.CaptureFixture[str]) -> None:
    number = ("trace", "request", "--broker", "1", "--correlation-id", "104")
    code, answer = ask(capsys, *number)
    assert code == ExitCode.INCONCLUSIVE
    assert len(answer["tables"][0]["rows"]) > 1
    span = ("--from", "2026-11-20T15:54:37", "--until", "2026-11-20T15:55")
    code, answer = ask(capsys, *number, *span)
    assert code == ExitCode.CLEAN
    assert answer["title"].startswith("PRODUCE of w1 to broker 1, correlation id 104")
    assert [step for step in answer["steps"] if step["line_no"] == 724]


def test_a_request_by_id_names_the_replicas_that_had_it(capsys: pytest.CaptureFixture[str]) -> None:
    reader = LakeReader(LAKE, find_tables(LAKE))
    (row, *_) = reader.rows(
        """SELECT operation_id, closing_replica FROM gold_delayed_operations
           WHERE api = 'PRODUCE' AND closing_replica = 2 AND broker_id = 1 ORDER BY arrival_time"""
    )
    code, answer = ask(capsys, "trace", "request", row["operation_id"][:12])
    assert code == ExitCode.CLEAN
    assert any("last of all for broker 2" in sentence for sentence in answer["sentences"])


def test_an_unknown_request_is_told_in_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    code, answer = ask(capsys, "trace", "request", "ffffffffffff")
    assert (code, answer["sentences"]) == (
        ExitCode.INCONCLUSIVE,
        ["Not found: gold.delayed_operations has no operation_id that begins so."],
    )


def test_a_finding_has_its_lines_and_what_follows(capsys: pytest.CaptureFixture[str]) -> None:
    code, answer = ask(capsys, "trace", "finding", "de56d406")
    assert code == ExitCode.CLEAN
    assert {row["rule_id"] for row in answer["tables"][0]["rows"]} >= {"acked-by-leader-only-lost", "hw-regression"}
    assert len(answer["steps"]) == 10
    code, answer = ask(capsys, "trace", "finding", answer["tables"][0]["rows"][0]["finding_id"])
    assert any("Follows from committed-data-lost" in sentence for sentence in answer["sentences"])
    assert ask(capsys, "trace", "finding", "no-such-rule")[0] == ExitCode.INCONCLUSIVE


def test_a_partition_s_life_is_told_in_order(capsys: pytest.CaptureFixture[str]) -> None:
    code, answer = ask(capsys, "trace", "partition", "sessions-1")
    times = [step["time"] for step in answer["steps"]]
    assert code == ExitCode.CLEAN
    assert times == sorted(times)
    assert any("elected uncleanly" in sentence for sentence in answer["sentences"])
    assert any("truncated its log from 341 to 115" in step["what"] for step in answer["steps"])


# --------------------------------------------------------------- compare, whatif


def test_the_side_on_which_a_replica_left_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    spans = ("2026-11-20T15:54:16..2026-11-20T15:54:23", "2026-11-20T15:54:23..2026-11-20T15:54:37")
    code, answer = ask(capsys, "compare", *spans)
    assert code == ExitCode.CLEAN
    assert any("in B: broker 2" in text and "left an ISR" in text for text in answer["sentences"])
    _, backwards = ask(capsys, "compare", *reversed(spans))
    assert any("in A: broker 2" in text for text in backwards["sentences"])
    _, same = ask(capsys, "compare", str(LAKE), f"{LAKE}@2026-11-20T15:00..", *OF_UNCLEAN)
    assert not any("took longer" in text for text in same["sentences"])


def test_an_empty_interval_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    code, answer = ask(capsys, "compare", "2020-01-01..2020-01-02", "2026-11-20T15:54:16..2026-11-20T15:54:23")
    assert code == ExitCode.INCONCLUSIVE
    assert "2020-01-01..2020-01-02" in answer["sentences"][0]


def test_whatif_counts_what_another_min_isr_would_have_refused(capsys: pytest.CaptureFixture[str]) -> None:
    code, answer = ask(capsys, "whatif", "--cluster", "ASBFCKqYSOSQqJfr97Jyhg")
    rows = {row["variant"]: row for row in answer["tables"][0]["rows"]}
    assert code == ExitCode.CLEAN
    assert rows["min.insync.replicas 1"]["refused"] == 0
    two = rows["min.insync.replicas 2"]
    assert two["operations"] + two["refused"] == rows["as it was"]["operations"]
    assert rows["if broker 2 is skipped"]["p99"] <= rows["as it was"]["p99"]


# --------------------------------------------------------------------- bad questions


@pytest.fixture
def lake_of_two_runs(tmp_path: Path) -> Path:
    """The lake, of which a second audit found nothing any more."""
    lake = tmp_path / "lake"
    shutil.copytree(LAKE, lake)
    for table in ("rule_results", "violations"):
        log = lake / "gold" / table / "_delta_log"
        first = log / f"{0:020}.json"
        actions = [json.loads(line) for line in first.read_text(encoding="utf-8").splitlines()]
        said = [
            {"commitInfo": {"timestamp": stamp, "userMetadata": run}} for stamp, run in ((1000, "aaa1"), (2000, "bbb2"))
        ]
        kept = [action for action in actions if "commitInfo" not in action]
        removed = [
            {"remove": {"path": action["add"]["path"], "dataChange": True}} for action in kept if "add" in action
        ]
        first.write_text("\n".join(map(json.dumps, [said[0], *kept])), encoding="utf-8")
        (log / f"{1:020}.json").write_text("\n".join(map(json.dumps, [said[1], *removed])), encoding="utf-8")
    # It was there before both.
    for table in lake.glob("*/*/_delta_log"):
        for commit in table.glob("*.json"):
            os.utime(commit, (0.5, 0.5))
    return lake


def test_a_run_is_compared_with_one_before(lake_of_two_runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["compare", "run:aaa", "run:bbb", *OF_UNCLEAN, "--lake", str(lake_of_two_runs), "--format", "json"]
    assert cli.run(arguments) == ExitCode.CLEAN
    answer = json.loads(capsys.readouterr().out)
    assert answer["title"].startswith("A: run:aaa (")
    assert "Findings: 1 violation in A, none in B." in answer["sentences"]
    elsewhere = ["compare", f"{lake_of_two_runs}@run:bbb", str(lake_of_two_runs), *OF_UNCLEAN, "--format", "json"]
    assert cli.run(elsewhere) == ExitCode.CLEAN
    assert not any("violation" in sentence for sentence in json.loads(capsys.readouterr().out)["sentences"])


def test_a_run_that_is_not_there_is_named_with_those_that_are(
    lake_of_two_runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.run(["compare", "run:ccc", "run:", "--lake", str(lake_of_two_runs)]) == ExitCode.USAGE
    assert "has no audit whose id begins with ccc; name one of bbb2, aaa1" in capsys.readouterr().err


def test_a_run_whose_files_were_removed_says_so(lake_of_two_runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for file in (lake_of_two_runs / "gold" / "rule_results").glob("*.parquet"):
        file.unlink()
    assert cli.run(["compare", "run:aaa", "run:bbb", *OF_UNCLEAN, "--lake", str(lake_of_two_runs)]) == ExitCode.USAGE
    assert ".parquet: is missing, and version 0 of its table needs it" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("survivors", "sessions"), "sessions: is not a partition; expected TOPIC-NUMBER, for example orders-0"),
        (("survivors", "absent-0"), "has no partition absent-0; name one that the logs contain"),
        (("trace", "partition", "ledger-0", *OF_UNCLEAN), f"has no partition ledger-0 in cluster {OF_UNCLEAN[1]}"),
        (("trace", "partition", "sessions-1", "--cluster", "x"), "has no cluster x; give --cluster with one of ASBF"),
        (("whatif", "--cluster", "x"), "has no cluster x; give --cluster with one of ASBF"),
        (("whatif",), "has lines of 2 clusters then; give --cluster with one of ASBF"),
        (("compare", str(LAKE), str(LAKE)), "has lines of 2 clusters then; give --cluster with one of ASBF"),
        (("compare", "2026-11-21..2026-11-20", str(LAKE)), "the end must come after the beginning"),
        (("compare", "soon..later", str(LAKE)), "invalid time 'soon'"),
        (("trace", "write"), "give a topic, a partition, or --client"),
        (("trace", "request", "--broker", "1"), "give the id of a request, or --broker and --correlation-id"),
    ],
)
def test_what_cannot_be_asked_is_told_in_one_line(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], complaint: str
) -> None:
    assert cli.run([*arguments, "--lake", str(LAKE)]) == ExitCode.USAGE
    assert complaint in " ".join(capsys.readouterr().err.split())


def test_a_lake_without_gold_names_the_remedy(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(LAKE / "bronze", tmp_path / "bronze")
    assert cli.run(["whatif", "--lake", str(tmp_path)]) == ExitCode.USAGE
    assert "holds no table gold.delayed_operations; run `highwater audit` on it first" in capsys.readouterr().err
    assert cli.run(["whatif", "--lake", str(tmp_path / "nothing")]) == ExitCode.USAGE


def test_the_document_s_examples_are_what_the_command_prints() -> None:
    assert answers.main(["--check"]) == 0, "python -m tests.bench.answers writes docs/answers.md anew"

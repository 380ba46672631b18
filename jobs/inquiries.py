"""``highwater trace``, ``survivors``, ``compare`` and ``whatif``: questions about a lake, answered without Spark."""

from __future__ import annotations

from datetime import datetime
from typing import Any, NamedTuple

from highwater.jobs.exit_codes import ExitCode
from highwater.jobs.lakes import list_tables
from highwater.jobs.question import Question
from highwater.pipelines.base.errors import InputError
from highwater.pipelines.base.values import iso_utc, micros
from highwater.pipelines.inquiry import (
    compare,
    finding,
    incidents,
    partition,
    request,
    survivors,
    whatif,
    write,
)
from highwater.pipelines.inquiry.answer import Answer, Table
from highwater.pipelines.inquiry.finding import find_findings, read_finding
from highwater.pipelines.inquiry.partition import (
    find_cluster,
    list_leaderless,
    read_partition_facts,
    read_partition_rows,
)
from highwater.pipelines.inquiry.read_lines import load_lines
from highwater.pipelines.inquiry.render import format_cells, format_json, format_text
from highwater.pipelines.inquiry.request import CANDIDATES_MAX, find_by_id, find_by_number, read_request
from highwater.pipelines.inquiry.whatif import variants
from highwater.pipelines.inquiry.write import read_writes
from highwater.pipelines.lake.commits import find_run_versions
from highwater.pipelines.lake.reader import LakeReader
from highwater.pipelines.report import small_tables
from highwater.pipelines.report.assemble import make_incident
from highwater.pipelines.storage.place import Place
from highwater.schemas.incidents import INCIDENTS

#: Maximum number of leaderless partitions that are printed.
PARTITIONS_MAX = 20


def tell(question: Question, *answers: Answer, is_whole: bool = False) -> ExitCode:
    """Print answers. Return INCONCLUSIVE if the logs show no answer.

    Args:
        is_whole: print log lines at full length.
    """
    if question.form == "json":
        texts = [format_json(answer) for answer in answers]
        question.console.result(texts[0] if len(texts) == 1 else "[" + ",\n".join(texts) + "]")
    else:
        for number, answer in enumerate(answers):
            question.console.prose(("\n" if number else "") + format_text(answer, is_whole))
            for table in answer.tables:
                question.console.prose(f"\n{table.title}")
                question.console.table(*format_cells(table))
    return ExitCode.CLEAN if any(answer.is_shown for answer in answers) else ExitCode.INCONCLUSIVE


def trace_request(
    question: Question,
    request_id: str | None,
    broker_id: int | None,
    correlation_id: int | None,
    connection: str | None,
) -> ExitCode:
    """Print the history of one request, or list the requests if several match.

    The request is given by (a prefix of) `request_id`, or by broker and correlation id, if needed with the connection.
    """
    reader = question.reader
    if request_id is not None:
        keys, asked = find_by_id(reader, request_id), f"request {request_id}"
        searched = "gold.delayed_operations has no operation_id that begins so"
    else:
        assert broker_id is not None
        assert correlation_id is not None
        keys = find_by_number(reader, broker_id, correlation_id, connection, *question.window, question.cluster_id)
        asked = f"request with correlation id {correlation_id} to broker {broker_id}"
        searched = "gold.request_phases has no request of this broker, correlation id, connection and time"
    if not keys:
        return tell(question, Answer(title=asked, is_shown=False, sentences=(f"Not found: {searched}.",)))
    if len(keys) > 1:
        return tell(question, _choose_answer(asked, keys))
    rows = read_request(reader, keys[0])
    return tell(question, request.answer(rows, load_lines(reader, request.list_shown_rows(rows))))


def _choose_answer(asked: str, keys: list[dict[str, Any]]) -> Answer:
    rows = tuple(
        {
            "line_time": iso_utc(key["line_time"]),
            "cluster": key["cluster_id"],
            "broker": key["broker_id"],
            "api": key["api"],
            "client_id": key["client_id"],
            "correlation_id": str(key["correlation_id"]),
            "connection": key["connection"],
        }
        for key in keys[:CANDIDATES_MAX]
    )
    many = f"More than {CANDIDATES_MAX}" if len(keys) > CANDIDATES_MAX else str(len(keys))
    say = f"{many} requests fit; choose one by --connection (any part of it), --from and --until, or --cluster."
    return Answer(title=asked, is_shown=False, sentences=(say,), tables=(Table(title="requests", rows=rows),))


def trace_write(question: Question, client_id: str | None, place: str | None) -> ExitCode:
    """Print at which offsets a client's records were written, and which replicas still hold them.

    Args:
        client_id: None for all clients.
        place: topic, or partition as TOPIC-NUMBER. None for all topics.
    """
    reader = question.reader
    topic, number = (None, None) if place is None else _find_topic_and_partition(reader, place)
    rows = read_writes(reader, client_id, topic, number, *question.window, question.cluster_id)
    return tell(question, write.answer(rows, load_lines(reader, rows.writes)))


def _find_topic_and_partition(reader: LakeReader, place: str) -> tuple[str, int | None]:
    """Return (topic, partition) of a name. The partition is None if the name is a known topic, like ``orders-0``."""
    topics = reader.rows(
        """SELECT 1 FROM (SELECT topic FROM silver_leader_and_isr UNION ALL SELECT topic FROM silver_replica_fetches)
           WHERE topic = $topic LIMIT 1""",
        topic=place,
    )
    return (place, None) if topics or not _is_partition(place) else split_place(place)


def _is_partition(place: str) -> bool:
    topic, _, number = place.rpartition("-")
    return bool(topic) and number.isdigit()


def split_place(place: str) -> tuple[str, int]:
    """Return topic and number of a partition.

    Raises:
        InputError: the text is not the name of a partition.
    """
    if not _is_partition(place):
        raise InputError(place, "is not a partition", "expected TOPIC-NUMBER, for example orders-0")
    topic, _, number = place.rpartition("-")
    return topic, int(number)


def trace_partition(question: Question, place: str) -> ExitCode:
    """Print the history of a partition."""
    reader, (topic, number) = question.reader, split_place(place)
    cluster_id = find_cluster(reader, topic, number, question.cluster_id)
    rows = read_partition_rows(reader, cluster_id, topic, number, *question.window)
    return tell(question, partition.answer(rows, load_lines(reader, partition.list_shown_rows(rows))))


def trace_finding(question: Question, finding_id: str, is_whole: bool) -> ExitCode:
    """Print the details of a finding, or list the findings if a rule has several.

    Args:
        is_whole: print log lines at full length.
    """
    reader = question.reader
    fitting = find_findings(reader, finding_id)
    if not fitting:
        say = "Not found: gold.violations has no finding whose id begins so, and none of a rule of this name."
        return tell(question, Answer(title=f"finding {finding_id}", is_shown=False, sentences=(say,)))
    if len(fitting) > 1:
        names = ("finding_id", "severity", "rule_id", "topic", "partition", "offset_start", "offset_end", "cause")
        rows = tuple({name: row[name] for name in names} for row in fitting[:CANDIDATES_MAX])
        say = f"{len(fitting)} findings fit; choose one by its id."
        table = Table(title="findings", rows=rows)
        return tell(question, Answer(title=f"finding {finding_id}", is_shown=False, sentences=(say,), tables=(table,)))
    return tell(question, finding.answer(read_finding(reader, fitting[0])), is_whole=is_whole)


def tell_incidents(question: Question, broker_id: int | None, topic: str | None, is_whole: bool) -> ExitCode:
    """Print the incidents of a window, a broker or a topic."""
    reader = question.reader
    if not reader.has(INCIDENTS.full_name):
        raise InputError(question.lake, "is of a version without incidents", "run `highwater audit` on it once")
    where = "" if question.cluster_id is None else "WHERE cluster_id = $cluster_id"
    parameters = {} if question.cluster_id is None else {"cluster_id": question.cluster_id}
    rows, lines = (
        reader.rows(f"SELECT * FROM {table} {where}", **parameters)
        for table in ("gold_incidents", "gold_incident_lines")
    )
    under_way = small_tables.make_incidents(
        rows, lines, small_tables.make_bounds(question.time_from, question.time_until)
    )
    chosen = incidents.select_chains([make_incident(row) for row in under_way], broker_id, topic)
    if question.form == "json":
        question.console.result(incidents.format_json(chosen))
    else:
        has_requests = bool(reader.rows("SELECT 1 FROM gold_delayed_operations LIMIT 1"))
        question.console.prose(incidents.format_text(chosen, has_requests, is_whole))
    return ExitCode.CLEAN


def tell_survivors(question: Question, place: str | None, at: datetime | None) -> ExitCode:
    """Print what each replica of a partition holds. Without a partition, print all leaderless partitions."""
    reader, at_us = question.reader, micros(at)
    if place is not None:
        topic, number = split_place(place)
        places = [(find_cluster(reader, topic, number, question.cluster_id), topic, number)]
    else:
        places = list_leaderless(reader, question.cluster_id, at_us)
    if not places:
        when = "at the end of the logs" if at_us is None else f"at {iso_utc(at_us)}"
        say = f"Every partition had a leader {when}. To check one anyway, name it: highwater survivors TOPIC-PARTITION."
        return tell(question, Answer(title="partitions without a leader", sentences=(say,)))
    if len(places) > PARTITIONS_MAX:
        question.console.note(f"{len(places)} partitions have no leader; these are the first {PARTITIONS_MAX}")
    results = [
        survivors.find_survivors(read_partition_facts(reader, cluster_id, topic, number, at_us))
        for cluster_id, topic, number in places[:PARTITIONS_MAX]
    ]
    if place is None and question.form != "json":
        question.console.prose(f"{survivors.summarize(results)}\n")
    return tell(
        question,
        *(survivors.answer(result, load_lines(reader, survivors.list_shown_rows(result))) for result in results),
    )


# --------------------------------------------------------------- figures of a time


class Span(NamedTuple):
    """A side of a comparison: a lake, a time range of a lake, or a lake as an earlier audit left it."""

    name: str
    lake: Place
    since: datetime | None
    until: datetime | None
    run_id: str | None = None  #: beginning of that audit's id; None: the last one's

    @property
    def reader(self) -> LakeReader:
        """Return a reader of this side's tables, as of its audit if it names one.

        Raises:
            InputError: the lake or the audit does not exist.
        """
        tables = list_tables(self.lake)
        versions = None if self.run_id is None else find_run_versions(self.lake, tables, self.run_id)
        return LakeReader(self.lake, tables, versions)


def compare_spans(question: Question, first: Span, second: Span, slow_ms: int) -> ExitCode:
    """Print what changed from `first` to `second`.

    Args:
        slow_ms: waits longer than this count as slow.
    """
    sides = [
        compare.side(
            span.reader,
            span.name,
            question.cluster,
            micros(span.since),
            micros(span.until),
            slow_ms,
        )
        for span in (first, second)
    ]
    return tell(question, compare.answer(sides[0], sides[1], slow_ms))


def tell_whatif(question: Question) -> ExitCode:
    """Print the latency of acks=all without each replica, and with another min.insync.replicas."""
    return tell(question, whatif.answer(variants(question.reader, question.cluster_id, *question.window)))

"""Verbs that ask a lake: their options, and what they hand to `jobs.inquiries`."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import click

from highwater.jobs.exit_codes import ExitCode
from highwater.jobs.help import Verb, Verbs
from highwater.jobs.options import TimeParam, options
from highwater.pipelines.base.config import load_config
from highwater.pipelines.base.console import RichConsole
from highwater.pipelines.base.zones import Localizer
from highwater.pipelines.storage.place import Place, place_of


@click.group(cls=Verbs)
def trace() -> None:
    """Show the history of one request, write, partition or finding, with its lines. Without Spark."""


@trace.command("request")
@click.argument("request_id", required=False)
@click.option("--broker", "broker_id", type=int, help="Broker that answered.")
@click.option("--correlation-id", type=int, help="Correlation id.")
@click.option("--connection", help="Connection, or any part of its name.")
@options("lake", "cluster", "from", "until", "answer format", "tz")
def trace_request(
    request_id: str | None, broker_id: int | None, correlation_id: int | None, connection: str | None, **given: Any
) -> ExitCode:
    """What REQUEST_ID (as the report shows it, or its beginning) waited for, and who answered when."""
    from highwater.jobs import inquiries

    if (request_id is None) == (broker_id is None or correlation_id is None):
        raise click.UsageError("give the id of a request, or --broker and --correlation-id")
    return inquiries.trace_request(_question(**given), request_id, broker_id, correlation_id, connection)


@trace.command("write")
@click.argument("place", metavar="[TOPIC|TOPIC-PARTITION]", required=False)
@click.option("--client", "client_id", help="Client id.")
@options("lake", "cluster", "from", "until", "answer format", "tz")
def trace_write(place: str | None, client_id: str | None, **given: Any) -> ExitCode:
    """At which offsets a client's records were written, and which replicas still hold them."""
    from highwater.jobs import inquiries

    if place is None and client_id is None:
        raise click.UsageError("give a topic, a partition, or --client")
    return inquiries.trace_write(_question(**given), client_id, place)


@trace.command("partition")
@click.argument("place", metavar="TOPIC-PARTITION")
@options("lake", "cluster", "from", "until", "answer format", "tz")
def trace_partition(place: str, **given: Any) -> ExitCode:
    """A partition's life: epochs, leaders, in-sync sets, truncations, unclean elections."""
    from highwater.jobs import inquiries

    return inquiries.trace_partition(_question(**given), place)


@trace.command("finding")
@click.argument("finding_id", metavar="FINDING_ID|RULE")
@click.option("--full", "is_whole", is_flag=True, help="Print lines of logs whole.")
@options("lake", "answer format", "tz")
def trace_finding(finding_id: str, is_whole: bool, **given: Any) -> ExitCode:
    """A violation or observation (by the beginning of its id), what each of its lines shows, what follows from it."""
    from highwater.jobs import inquiries

    return inquiries.trace_finding(_question(**given), finding_id, is_whole)


@click.command(cls=Verb)
@click.argument("place", metavar="[TOPIC-PARTITION]", required=False)
@click.option("--at", type=TimeParam(), help="Use only lines before this time (ISO 8601, UTC).")
@options("lake", "cluster", "answer format", "tz")
def survivors(place: str | None, at: datetime | None, **given: Any) -> ExitCode:
    """What each replica holds, and what is lost if it is elected; by default of partitions without a leader."""
    from highwater.jobs import inquiries

    return inquiries.tell_survivors(_question(**given), place, at)


@click.command(cls=Verb)
@click.argument("first", metavar="A")
@click.argument("second", metavar="B")
@options("lake", "cluster", "conf", "answer format", "tz")
def compare(first: str, second: str, conf: Path | None, **given: Any) -> ExitCode:
    """Compare time ranges, runs or lakes. A and B are FROM..UNTIL, run:ID, LAKE, LAKE@FROM..UNTIL or LAKE@run:ID."""
    from highwater.jobs import inquiries

    question = _question(**given)
    before, after = (_span(text, question.lake) for text in (first, second))
    return inquiries.compare_spans(question, before, after, load_config(conf, {}).latency.slow_ms)


@click.command(cls=Verb)
@options("lake", "cluster", "from", "until", "answer format", "tz")
def whatif(**given: Any) -> ExitCode:
    """p50, p99, p999 of acks=all without each replica, by leader, and with another min.insync.replicas."""
    from highwater.jobs import inquiries

    return inquiries.tell_whatif(_question(**given))


@click.command(cls=Verb)
@click.option("--broker", "broker_id", type=int, help="Only chains that are about this broker.")
@click.option("--topic", help="Only chains that are about this topic, or this partition.")
@click.option("--full", "is_whole", is_flag=True, help="Print lines of logs whole.")
@options("lake", "cluster", "from", "until", "answer format", "tz")
def incidents(broker_id: int | None, topic: str | None, is_whole: bool, **given: Any) -> ExitCode:
    """What happened, the most harmful first, each with its cause, its lines and the command that asks further."""
    from highwater.jobs import inquiries

    return inquiries.tell_incidents(_question(**given), broker_id, topic, is_whole)


VERBS = (incidents, trace, survivors, compare, whatif)


def _question(localizer: Localizer | None, **given: Any) -> Any:
    from highwater.jobs.question import Question

    return Question(RichConsole(localizer=localizer), **given)


#: Before the id of an audit.
_RUN = "run:"


def _span(text: str, lake: Place) -> Any:
    """Return the lake, run or time range that `text` names. Without a time range it is the path of a lake."""
    from highwater.jobs.inquiries import Span

    folder, at, interval = text.rpartition("@")
    place = place_of(folder) if at else lake
    if interval.startswith(_RUN):
        return Span(text, place, None, None, interval.removeprefix(_RUN))
    since, dots, until = interval.partition("..")
    if not dots or "/" in interval:
        return Span(text, place_of(text), None, None)
    start, end = (TimeParam().convert(bound, None, None) if bound else None for bound in (since, until))
    if start is not None and end is not None and start >= end:
        raise click.UsageError(f"{text}: the end must come after the beginning")
    return Span(text, place, start, end)

"""What happened as chains: a cause, and what it brought about."""

import re
import shlex

import click
import pytest

from highwater.jobs.cli import highwater
from highwater.pipelines.incidents.kinds import KINDS
from highwater.pipelines.report.detail import NO_DETAIL
from highwater.pipelines.report.happened import describe_age as age_of
from highwater.pipelines.report.happened import make_chains
from highwater.pipelines.report.headline import CAUSE_WORDS, add_headline, shorten
from tests.bench.incident_examples import EXAMPLES
from tests.unit.report import sample


def test_a_cause_without_advice_has_that_of_its_worst_effect() -> None:
    cause = sample.incident("broker_stopped", advice="")
    effects = [
        sample.incident("under_min_isr", caused_by=cause.incident_id, advice="Bring broker 3 back."),
        sample.incident("isr_shrank", caused_by=cause.incident_id, advice="Wait."),
    ]
    (chain,) = make_chains([cause, *effects])
    assert chain.advice == "Bring broker 3 back."
    (with_own,) = make_chains([cause.model_copy(update={"advice": "Start it."}), *effects])
    assert with_own.advice == "Start it."
    (alone,) = make_chains([cause])
    assert alone.advice == ""


@pytest.mark.parametrize(
    ("kind", "end_time", "advice"),
    [
        ("produces_refused", "2026-11-20T14:05:16.300Z", "Free space."),
        ("produces_refused", None, "Bring it back."),
        ("data_lost", "2026-11-20T14:05:16.300Z", "Bring it back."),
    ],
)
def test_the_advice_about_an_effect_that_is_over_is_that_of_its_cause(
    kind: str, end_time: str | None, advice: str
) -> None:
    cause = sample.incident("log_directory_failed", advice="Free space.")
    effect = sample.incident(
        kind, severity="critical", caused_by=cause.incident_id, advice="Bring it back.", end_time=end_time
    )
    (chain,) = make_chains([cause, effect])
    assert (chain.head, chain.advice) == (effect, advice)


@pytest.mark.parametrize(
    ("last_time", "is_over"), [("14:05:16.300", False), ("14:05:25.000", True), ("14:06:30.000", True), (None, False)]
)
def test_an_incident_is_over_only_if_the_logs_continue(last_time: str | None, is_over: bool) -> None:
    report = sample.report(incidents=(sample.incident(),))
    last = None if last_time is None else f"2026-11-20T{last_time}Z"
    brokers = tuple(broker.model_copy(update={"last_time": last}) for broker in report.brokers)
    action = add_headline(report.model_copy(update={"brokers": brokers})).headline.action
    assert action.startswith("Over since") == is_over


@pytest.mark.parametrize(
    ("rest", "why"),
    [
        ("The controller noticed at 14:05:09. Nothing in the logs explains why.", "Why: Nothing in the logs"),
        ("It had no space left.", "Why: It had no space left."),
    ],
)
def test_a_consequence_is_no_cause(rest: str, why: str) -> None:
    report = sample.report(incidents=(sample.incident(sentence=f"Broker 3 died at 14:05:00. {rest}"),))
    assert add_headline(report).headline.text[1].startswith(why)


def test_the_times_of_a_chain_are_those_of_its_worst_effect() -> None:
    outage = {"class_": "unavailable", "start_time": "2026-11-20T15:28:30Z", "end_time": "2026-11-20T15:28:40Z"}
    absence = {"class_": "remark", "start_time": "2026-11-20T15:28:37Z", "end_time": None}
    cause = sample.incident("broker_died").model_copy(update=absence | {"start_time": "2026-11-20T15:28:23Z"})
    worst = sample.incident("partitions_without_leader", caused_by=cause.incident_id).model_copy(update=outage)
    later = sample.incident("isr_shrunk", caused_by=cause.incident_id).model_copy(update=absence)
    (chain,) = make_chains([cause, worst, later])
    assert (chain.start_time, chain.end_time) == (outage["start_time"], outage["end_time"])


def parsed(words: list[str]) -> click.Context:
    """Parse a command without running it."""
    command: click.Command = highwater
    while isinstance(command, click.Group):
        name, *words = words
        command = command.commands[name]
    return command.make_context(name, words)


@pytest.mark.parametrize("has_requests", [True, False])
@pytest.mark.parametrize("end_time", [None, "2026-11-20T14:05:16.300Z"])
@pytest.mark.parametrize("kind", [kind.name for kind in KINDS])
def test_each_action_ends_in_a_command_that_can_be_pasted(kind: str, end_time: str | None, has_requests: bool) -> None:
    for names in ((), ("a topic-0", "orders-1")):
        incident = sample.incident(kind, end_time=end_time, topic_partitions=names, sentence=EXAMPLES[kind].sentence)
        (chain,) = make_chains([incident])
        command = chain.list_commands(has_requests)[0]
        assert chain.action(has_requests) == f"{incident.advice} {command}"
        script, *words = shlex.split(command)
        if script == "highwater":
            assert parsed(words).params["lake"] is not None
        else:
            assert end_time is None, "what is over needs no command of Kafka"
            assert script.startswith("kafka-")
            assert "--bootstrap-server" in words


@pytest.mark.parametrize(
    ("advice", "has_own"),
    [
        ("See the lines that prove it: highwater trace finding e5f3179f.", True),
        ("Move it: kafka-reassign-partitions.sh --bootstrap-server HOST:PORT --list", True),
        ("See highwater trace finding e5f3179f.", False),
        ("List them: kafka-topics.sh --bootstrap-server HOST:PORT --list. Then restart broker 1.", False),
        ("Restart broker 1.", False),
        ("", False),
    ],
)
def test_an_advice_with_a_command_of_its_own_gets_no_second_one(advice: str, has_own: bool) -> None:
    incident = sample.incident("isr_shrunk").model_copy(update={"advice": advice})
    (chain,) = make_chains([incident])
    assert (chain.action(has_requests=False) == advice) == has_own


@pytest.mark.parametrize("kind", [kind.name for kind in KINDS])
def test_a_cause_is_one_short_sentence_with_the_words_of_its_incident(kind: str) -> None:
    sentence = EXAMPLES[kind].sentence.split(". ")[0].rstrip(".") + "."
    cause = shorten(sentence, CAUSE_WORDS)
    assert len(cause.split()) <= CAUSE_WORDS or not re.search(r"[:;] ", cause)
    words = iter(re.findall(r"[^\s.:;,()]+", sentence))
    assert all(word in words for word in re.findall(r"[^\s.:;,()]+", cause)), "the words in their order"


@pytest.mark.parametrize(
    ("sentence", "short"),
    [
        ("One two three.", "One two three."),
        ("Broker 2 froze (twice) from a to b: it wrote no line, and then it wrote.", "Broker 2 froze from a to b."),
        ("Partitions a-0, b-1 and c-2 of the topics that we have had no leader.", None),
    ],
)
def test_a_sentence_is_cut_between_clauses_only(sentence: str, short: str | None) -> None:
    assert shorten(sentence, 8) == (short or sentence)


@pytest.mark.parametrize(
    ("made", "age"),
    [
        ("2026-11-26T14:05:59.000Z", " (5 days ago)"),
        ("2026-11-21T14:06:00.000Z", " (24 hours ago)"),
        ("2026-11-20T14:08:00.000Z", " (2 minutes ago)"),
        ("2026-11-20T14:07:00.000Z", " (now)"),
        ("2026-11-20T14:05:00.000Z", ""),
        (None, ""),
    ],
)
def test_the_age_of_the_logs_is_that_of_their_last_line(made: str | None, age: str) -> None:
    cost = NO_DETAIL.cost.model_copy(update={"made": made})
    report = sample.report(detail=NO_DETAIL.model_copy(update={"cost": cost}))
    assert max(broker.last_time or "" for broker in report.brokers).startswith("2026-11-20T14:06:00")
    assert age_of(report) == age

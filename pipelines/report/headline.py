"""The headline of a report: the worst effect, its amount, its cause, its known bug, and what to do now. Pure.

A proven loss comes first, then another broken guarantee, then the first chain of incidents. Without any of these the
headline is about the verdict.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from highwater.pipelines.base.plain import count, number, offsets
from highwater.pipelines.incidents.classes import IncidentClass
from highwater.pipelines.incidents.incident import UNEXPLAINED, releases_of
from highwater.pipelines.incidents.kinds.findings import LOSS_RULES
from highwater.pipelines.incidents.kinds.logged import OF_MESSAGES, also_logged
from highwater.pipelines.incidents.words import numbered, partitions
from highwater.pipelines.report.classes import WORDS, VerdictClass, derive_verdict_class
from highwater.pipelines.report.correctness import count_rule_states
from highwater.pipelines.report.happened import (
    Chain,
    describe_times,
    has_requests,
    rest_of,
    sentence_case,
    sort_by_harm,
    split_span,
    take_sentence,
)
from highwater.pipelines.report.model import CLEAN, VIOLATED, Finding, Headline, Incident, Report
from highwater.pipelines.rules.guarantees.committed_data_lost import CAUSE
from highwater.pipelines.rules.texts import TEXTS

#: Partitions that a headline names.
NAMED_MAX: Final = 3
#: Words of the sentence about the effect, and of each about a cause.
EFFECT_WORDS: Final = 40
CAUSE_WORDS: Final = 20
NO_CAUSE: Final = "nothing in the logs explains it."


def add_headline(report: Report) -> Report:
    """Return the report with class and headline set."""
    violated = [finding.rule_id for finding in report.violations]
    if not report.window.since and not report.window.until:
        violated += [rule.rule_id for rule in report.rules if rule.cases]
    of_verdict = derive_verdict_class(report.verdict, violated, bool(report.open_cases))
    return report.model_copy(update={"verdict_class": of_verdict, "headline": _make_headline(report, of_verdict)})


def _make_headline(report: Report, of_verdict: VerdictClass) -> Headline:
    chains = sort_by_harm(report.incidents)
    findings = [finding for finding in report.violations if finding.rule_id in LOSS_RULES] or list(report.violations)
    if findings:
        return _describe_findings(report, findings, chains)
    told = next((chain for chain in chains if chain.harm != "remark"), None)
    if told is not None and of_verdict != "guarantee_broken":
        return _describe_chain(report, told)
    return _describe_verdict(report, of_verdict)


# ------------------------------------------------------------------ findings


def _describe_findings(report: Report, findings: Sequence[Finding], chains: Sequence[Chain]) -> Headline:
    rule_id = findings[0].rule_id
    findings = [finding for finding in findings if finding.rule_id == rule_id]
    is_loss = rule_id in LOSS_RULES
    harm: IncidentClass = "data_lost" if is_loss else "guarantee_broken"
    chain = next((chain for chain in chains if chain.harm == harm), None)
    amount = _describe_loss(findings) if is_loss else _describe_broken(report, findings)
    subject = _describe_places(findings)
    where = f" of {subject}" if is_loss and subject else ""
    times = sorted(finding.time for finding in findings if finding.time)
    when = f", {describe_times(times[0], times[-1])} UTC" if times else ""
    what = f"{amount}{where}{when}."
    cause = _describe_cause(findings[0], chain)
    known_bug = next((finding.known_bug for finding in findings if finding.known_bug), None)
    action = _keep_and_resend(report, findings) if is_loss else _describe_action(findings[0], known_bug)
    return _build_headline(harm, what, amount, subject, cause, known_bug, action)


def _describe_loss(findings: Sequence[Finding]) -> str:
    """Return the number of lost records in words, if offsets show it."""
    texts = TEXTS[findings[0].rule_id]
    if not texts.is_on_replicas:
        return number(len(findings), "acknowledged batch", "acknowledged batches")
    offsets = [(finding.offset_start, finding.offset_end) for finding in findings]
    sizes = [end - start for start, end in offsets if start is not None and end is not None]
    what = texts.broken
    if all(finding.records is None for finding in findings):
        what = what.replace("acknowledged", "committed")
    if len(sizes) < len(findings) or not sizes:
        return sentence_case(what)
    records = sum(sizes)
    return f"{count(records)} {what if records > 1 else what.replace('records', 'record')}"


def _describe_broken(report: Report, findings: Sequence[Finding]) -> str:
    rule_id = findings[0].rule_id
    texts = TEXTS.get(rule_id)
    what = texts.broken if texts and texts.broken else "a guarantee of Kafka was broken"
    cases = max(len(findings), sum(rule.cases for rule in report.rules if rule.rule_id == rule_id))
    often = f", {number(cases, 'time')}" if cases > 1 else ""
    return f"{what}{often}{_describe_lateness(report, rule_id)} ({rule_id})"


def _describe_lateness(report: Report, rule_id: str) -> str:
    """Return the lateness of the worst late produce in words. Empty for rules other than `late-completion`."""
    worst = report.operations.produce.worst if rule_id == "late-completion" else ()
    late = [operation.residual_ms for operation in worst if operation.operation_class == "late"]
    longest_ms = max((residual for residual in late if residual is not None), default=None)
    if longest_ms is None:
        return ""
    return f", up to {longest_ms / 1000:,.1f} s" if longest_ms >= 1000 else f", up to {longest_ms:,.0f} ms"


def _describe_places(findings: Sequence[Finding]) -> str:
    """Return ``events-0 (offsets 848-897)``. With more than `NAMED_MAX` partitions, return their number."""
    named = list(dict.fromkeys(filter(None, map(_place, findings))))
    if len(named) <= NAMED_MAX:
        return ", ".join(named)
    partitions = {(finding.topic, finding.partition) for finding in findings}
    topics = sorted({finding.topic for finding in findings if finding.topic})
    more = f" and {len(topics) - NAMED_MAX} more topics" if len(topics) > NAMED_MAX else ""
    return f"{number(len(partitions), 'partition')} of {', '.join(topics[:NAMED_MAX])}{more}"


def _place(finding: Finding) -> str:
    if finding.topic is None:
        return ""
    name = finding.topic if finding.partition is None else f"{finding.topic}-{finding.partition}"
    shown = offsets(finding.offset_start, finding.offset_end)
    return f"{name} ({shown})" if shown else name


def _describe_cause(finding: Finding, chain: Chain | None) -> str:
    own = take_sentence(finding.message.partition(CAUSE)[2])
    behind = [take_sentence(incident.sentence) for incident in (chain.because if chain else ())]
    # The cause that the finding names and the incident behind it, each one sentence.
    causes = list(dict.fromkeys(filter(None, (own, *behind[-1:])))) or [sentence_case(NO_CAUSE)]
    return " ".join(shorten(cause, CAUSE_WORDS) for cause in causes)


def shorten(sentence: str, limit: int) -> str:
    """Return a sentence without brackets and last clauses, to have at most `limit` words if possible."""
    if len(sentence.split()) <= limit:
        return sentence
    clauses = _CLAUSE.split(_BRACKETS.sub("", sentence.rstrip(".")))
    for end in range(len(clauses), 1, -1):
        if len("".join(clauses[:end]).split()) <= limit:
            return f"{''.join(clauses[:end])}."
    return f"{clauses[0]}."


_BRACKETS: Final = re.compile(r" \([^()]*\)")
#: The start of a clause without which the sentence before it is whole.
_CLAUSE: Final = re.compile(r"(?=: |; |, (?:and|but|so|then|until|when|where|which|while|because)\b)")


def _keep_and_resend(report: Report, findings: Sequence[Finding]) -> str:
    """Return instructions to preserve the records that replicas still have, and to find the records to resend."""
    first = findings[0]
    if not TEXTS[first.rule_id].is_on_replicas:
        return f"No replica has the records. Send them again: highwater trace finding {first.finding_id[:8]}"
    down = sorted(
        {
            broker_id
            for incident in report.incidents
            if incident.end_time is None and incident.kind in _DOWN and incident.start_time <= (first.time or "")
            if first.cluster_id in (None, incident.cluster_id)
            for broker_id in incident.broker_ids
        }
    )
    keep = ""
    if down:
        brokers = f"broker{'s' if len(down) > 1 else ''} {', '.join(map(str, down))}"
        keep = f"Do not start {brokers}: a restart deletes what only {'they hold' if len(down) > 1 else 'it holds'}. "
    survivors = ""
    if first.topic is not None and first.partition is not None:
        survivors = f"See which replica still has them: highwater survivors {first.topic}-{first.partition}. "
    if survivors and first.records is not None:
        again = f"Send them again; clients and offsets: highwater trace write {first.topic}-{first.partition}"
    else:
        again = f"Send them again; offsets: highwater trace finding {first.finding_id[:8]}"
    return f"{keep}{survivors}{again}"


#: Kinds of incident in which a broker is away: it may hold what a restart as follower would delete.
_DOWN: Final = ("broker_died", "broker_halted", "broker_stopped", "log_directory_failed", "logs_end_early")


def _describe_action(finding: Finding, known_bug: str | None) -> str:
    fixed = releases_of(known_bug) if known_bug else ""
    texts = TEXTS.get(finding.rule_id)
    act = take_sentence(texts.act) if texts else ""
    what = f"Upgrade to {fixed} or later." if fixed else "" if "known bug" in act else act
    return f"{what} The proof, line by line: highwater trace finding {finding.finding_id[:8]}".strip()


# ------------------------------------------------------------------ chains and verdicts


def _describe_chain(report: Report, chain: Chain) -> Headline:
    head = chain.head
    what = shorten(_add_date(take_sentence(head.sentence), head.start_time), EFFECT_WORDS)
    if head.kind in (*OF_MESSAGES, also_logged.name) and " logged " not in what:
        # The first sentence is the meaning of a text, which names no place.
        places = [partitions(head.topic_partitions)] if head.topic_partitions else []
        places += [numbered("broker", head.broker_ids)] if head.broker_ids else []
        what = f"{what.removesuffix('.')} ({', '.join(places)})." if places else what
    is_unknown = head.sentence.endswith(UNEXPLAINED)
    behind = chain.because[-1].sentence if chain.because else "" if is_unknown else rest_of(head.sentence)
    cause = shorten(take_sentence(behind.removesuffix(UNEXPLAINED).strip()), CAUSE_WORDS) or sentence_case(NO_CAUSE)
    over = f"Over since {split_span(head.end_time, None)[0]}. " if _is_over(report, head) else ""
    action = f"{over}{chain.action(has_requests(report))}"
    bug = head.known_bug.id if head.known_bug else None
    subject = ", ".join(head.topic_partitions[:NAMED_MAX]) or ", ".join(f"broker {it}" for it in head.broker_ids)
    return _build_headline(chain.harm, what, what, subject, cause, bug, action)


def _is_over(report: Report, incident: Incident) -> bool:
    """Return True if the logs continue after the incident for a minute, or for half of its duration."""
    last = max((broker.last_time for broker in report.brokers if broker.last_time), default=None)
    if incident.end_time in (None, incident.start_time) or last is None:
        return False
    start, end, until = map(datetime.fromisoformat, (incident.start_time, incident.end_time or "", last))
    return until - end >= min(timedelta(minutes=1), (end - start) / 2)


def _add_date(sentence: str, start_time: str) -> str:
    """Return the sentence with the date (first 10 characters of `start_time`) before its first time of day."""
    return _CLOCK.sub(f"{start_time[:10]} \\g<0>", sentence, count=1)


#: The first time of day, if no date comes before it.
_CLOCK: Final = re.compile(r"(?<!\d{4}-\d\d-\d\d )\b\d\d:\d\d:\d\d\b")


def _describe_verdict(report: Report, of_verdict: VerdictClass) -> Headline:
    states = count_rule_states(report)
    kept = number(states.get(CLEAN, 0), "guarantee")
    if report.verdict == VIOLATED:
        broken = [rule.rule_id for rule in report.rules if rule.cases] or ["a guarantee of Kafka"]
        what, cause, action = f"{', '.join(broken)}.", NO_CAUSE, "highwater report --section rules"
    elif of_verdict == CLEAN:
        what = f"{kept} checked, all kept; no fault is shown." if states else "no rule was run; no fault is shown."
        cause, action = "nothing in these logs points to a fault.", "nothing."
    else:
        opened = report.open_cases
        what = f"{place_and_rule(opened[0])}." if opened else f"{kept} checked and kept; no fault is shown."
        cause = report.inconclusive[0] if report.inconclusive else "these logs lack the evidence"
        cause = cause if cause.endswith((".", "?")) else f"{cause}."
        needs = next((gap.needs for gap in report.coverage.not_checkable if gap.needs), "")
        finding = f"highwater trace finding {opened[0].finding_id[:8]}" if opened else ""
        action = finding or needs or "add the missing logs and audit again."
    return _build_headline(of_verdict, what, what, "", cause, None, action)


def place_and_rule(finding: Finding) -> str:
    """Return a clause with the rule of an undecided case, and its partition if known."""
    where = _place(finding)
    return f"{finding.rule_id}{f' of {where}' if where else ''} cannot be decided from these logs"


def _build_headline(
    harm: str, what: str, amount: str, subject: str, cause: str, known_bug: str | None, action: str
) -> Headline:
    fixed = releases_of(known_bug) if known_bug else ""
    bug = f"Known bug {known_bug}{f', fixed in {fixed}' if fixed else ''}." if known_bug else ""
    causes = [] if known_bug and cause.lower() == NO_CAUSE else [cause]
    # A bug explains a broken guarantee by itself. Of a loss it explains how the cause was possible.
    why = [bug, *causes] if harm == "guarantee_broken" else [*causes, bug]
    return Headline.of(
        {},
        class_=harm,
        text=(
            f"{WORDS[harm]}: {what}",
            f"Why: {' '.join(filter(None, why))}",
            f"Now: {action}",
        ),
        amount=amount,
        subject=subject,
        cause=cause,
        known_bug=known_bug,
        action=action,
    )

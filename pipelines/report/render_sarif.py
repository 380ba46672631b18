"""The report as SARIF 2.1.0 (OASIS, errata 01), for tools that show findings next to the files that prove them.

Incidents come first, each with the rule of its kind: ``incident/broker_died``. A critical incident is a failure at
level ``error``, a major one at ``warning``, a minor one at ``note``. Deliberate actions are ``informational``.

A violation is a failure at level ``error``. An observation is one at level ``note``, so that no gate fails on legal
behaviour. An undecided case, and a rule that these logs do not decide, has the kind ``open``. A kept rule has ``pass``,
a rule with nothing to judge ``notApplicable``. Findings that follow from a finding are listed in its properties.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Any
from urllib.parse import quote
from uuid import NAMESPACE_URL, uuid5

import orjson

from highwater.pipelines.base.plain import plain
from highwater.pipelines.incidents.kinds import BY_NAME
from highwater.pipelines.report.correctness import place_of
from highwater.pipelines.report.happened import show_bug
from highwater.pipelines.report.model import (
    CLEAN,
    INCONCLUSIVE,
    VIOLATED,
    Evidence,
    Finding,
    Incident,
    Report,
    RuleResult,
)
from highwater.pipelines.report.summary import write_window
from highwater.pipelines.rules.registry import BY_ID
from highwater.pipelines.rules.rule import Rule

SCHEMA_URI = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
#: Characters of all lines of evidence, and of one; beyond it a line has its place but no text.
SNIPPET_CHARS_MAX = 2_000_000
LINE_CHARS_MAX = 2000
MESSAGE_CHARS_MAX = 4000
#: Files that are no evidence; ``report.json`` has all.
INPUTS_MAX = 500
IMPLIED_MAX = 20
FINGERPRINT = "finding/v1"
INCIDENT_FINGERPRINT = "incident/v1"
#: Name of the common folder, to which the paths are relative.
_BASE = "LOGS"
_EXIT_CODES = {CLEAN: 0, VIOLATED: 1, INCONCLUSIVE: 3}
_KINDS = {"violation": ("fail", "error"), "observation": ("fail", "note"), "open": ("open", "none")}
#: Kind and level of an incident, by its severity.
_SEVERITIES = {
    "critical": ("fail", "error"),
    "major": ("fail", "warning"),
    "minor": ("fail", "note"),
    "info": ("informational", "none"),
}
#: Before an incident's kind, in its rule's id.
_INCIDENT = "incident/"


def render_sarif(report: Report) -> bytes:
    """Return the report as one SARIF log in UTF-8. Equal reports give equal bytes."""
    run = _Run(report)
    document = {"$schema": SCHEMA_URI, "version": "2.1.0", "runs": [run.as_dict()]}
    return orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


class _Run:
    """One SARIF run. Results must be created in order, because the total text of evidence is limited."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._rules = list(_list_rule_ids(report))
        self._files = _Files(report)
        self._chars_left = SNIPPET_CHARS_MAX
        self._lines_without_text = 0

    def as_dict(self) -> dict[str, Any]:
        report, provenance = self._report, self._report.provenance
        results = [*map(self._make_incident, report.incidents), *self._make_findings(), *self._make_rule_results()]
        run: dict[str, Any] = {
            "tool": {
                "driver": {
                    "name": "highwater",
                    "version": provenance.code_version,
                    "rules": [_make_descriptor(rule_id) for rule_id in self._rules],
                }
            },
            "automationDetails": {"id": f"highwater/{provenance.run_id}", "guid": _make_guid(provenance.run_id)},
            "originalUriBaseIds": {_BASE: self._files.base},
            "artifacts": self._files.artifacts,
            "invocations": [
                {
                    "executionSuccessful": True,
                    "exitCode": _EXIT_CODES[report.verdict],
                    "exitCodeDescription": report.verdict,
                    "toolExecutionNotifications": list(self._make_notifications()),
                }
            ],
            "columnKind": "unicodeCodePoints",
            "results": results,
        }
        if provenance.run_before is not None:
            run["baselineGuid"] = _make_guid(provenance.run_before)
        return run

    def _make_result(
        self, rule_id: str, kind: str, level: str, message: str, is_new: bool | None, **others: Any
    ) -> dict[str, Any]:
        return {
            "ruleId": rule_id,
            "ruleIndex": self._rules.index(rule_id),
            "kind": kind,
            "level": level,
            "message": _make_text(message),
            **others,
        } | ({} if is_new is None else {"baselineState": "new" if is_new else "unchanged"})

    def _make_locations(self, evidence: Sequence[Evidence], logical: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Return the locations of a result: its first line, its partitions, and all lines as a flow."""
        places = [self._place(line) for line in evidence]
        if not places:
            return {"locations": [{"logicalLocations": logical}]} if logical else {}
        location = {"physicalLocation": places[0]} | ({"logicalLocations": logical} if logical else {})
        return {"locations": [location], "codeFlows": [{"threadFlows": _make_thread_flows(evidence, places)}]}

    def _make_incident(self, incident: Incident) -> dict[str, Any]:
        return self._make_result(
            f"{_INCIDENT}{incident.kind}",
            *_SEVERITIES[incident.severity],
            " ".join(filter(None, (incident.sentence, show_bug(incident), incident.advice))),
            incident.is_new,
            partialFingerprints={INCIDENT_FINGERPRINT: incident.incident_id},
            properties=_make_incident_properties(incident),
            **self._make_locations(incident.evidence, [_make_place(name) for name in incident.topic_partitions]),
        )

    def _make_findings(self) -> Iterator[dict[str, Any]]:
        report = self._report
        for severity, findings in (
            ("violation", report.violations),
            ("open", report.open_cases),
            ("observation", report.observations),
        ):
            for finding in findings:
                yield self._make_finding(finding, severity)

    def _make_finding(self, finding: Finding, severity: str) -> dict[str, Any]:
        place = place_of(finding)
        bug = f" ({finding.known_bug})" if finding.known_bug else ""
        return self._make_result(
            finding.rule_id,
            *_KINDS[severity],
            f"{f'{place}: ' if place else ''}{finding.message}{bug}",
            finding.is_new,
            partialFingerprints={FINGERPRINT: finding.fingerprint},
            properties=_make_properties(finding, severity),
            **self._make_locations(finding.evidence, list(_make_logical(finding))),
        )

    def _make_rule_results(self) -> Iterator[dict[str, Any]]:
        """Yield results for kept rules, and for undecided rules without an open case."""
        for rule in self._report.rules:
            kind = {CLEAN: "pass", INCONCLUSIVE: "open"}.get(rule.verdict) if rule.applicable else "notApplicable"
            if kind is None or rule.open_cases:
                continue
            yield self._make_result(rule.rule_id, kind, "none", _describe_judged(rule), rule.is_new)

    def _place(self, line: Evidence) -> dict[str, Any]:
        region: dict[str, Any] = {"byteOffset": line.byte_offset}
        if line.line_no > 0:
            region["startLine"] = line.line_no
        if line.byte_length is not None:
            region["byteLength"] = line.byte_length
        text = line.text[:LINE_CHARS_MAX]
        if len(text) <= self._chars_left:
            self._chars_left -= len(text)
            region["snippet"] = {"text": text}
        else:
            self._lines_without_text += 1
        return {"artifactLocation": self._files.location(line.file), "region": region}

    def _make_notifications(self) -> Iterator[dict[str, Any]]:
        report = self._report
        if report.window.since or report.window.until:
            yield _make_notification("note", f"window: {write_window(report.window)}")
        for outside in report.window.outside:
            yield _make_notification("warning", f"outside the window: {outside}")
        for reason in report.inconclusive:
            yield _make_notification("warning", f"inconclusive: {reason}")
        for problem in report.problems:
            yield _make_notification("warning", problem)
        for gap in report.coverage.not_checkable:
            yield _make_notification(
                "note",
                f"cannot be shown: {gap.rule_id}: {gap.reason}. {gap.needs}{f'. {gap.cost}' if gap.cost else ''}",
            )
        for note in report.notes:
            yield _make_notification("note", note)
        if self._lines_without_text:
            text = f"{self._lines_without_text} lines of evidence have their place only; report.json has their text."
            yield _make_notification("note", text)
        if self._files.left_out:
            yield _make_notification("note", f"{self._files.left_out} more files were read; report.json lists them.")


class _Files:
    """Maps files to their path below the common folder. Files with evidence come first."""

    def __init__(self, report: Report) -> None:
        hashes = {source.file: source.sha256 for source in report.provenance.inputs}
        findings = (*report.violations, *report.open_cases, *report.observations)
        of_all = [each.evidence for each in report.incidents] + [finding.evidence for finding in findings]
        cited = dict.fromkeys(line.file for evidence in of_all for line in evidence)
        others = [file for file in hashes if file not in cited]
        self.left_out = max(0, len(others) - INPUTS_MAX)
        shown = [*cited, *others[:INPUTS_MAX]]
        self._folder = _find_folder(shown)
        self._index = {file: number for number, file in enumerate(shown)}
        self.base: dict[str, Any] = {"description": {"text": "The folder that all files read are in."}}
        if self._folder.startswith("/"):
            self.base["uri"] = f"file://{quote(self._folder)}"
        elif "://" in self._folder:
            self.base["uri"] = quote(self._folder, safe=":/")
        self.artifacts = [
            {"location": self.location(file)} | ({"hashes": {"sha-256": hashes[file]}} if file in hashes else {})
            for file in shown
        ]

    def location(self, file: str) -> dict[str, Any]:
        """Return the SARIF location of a file."""
        return {
            "uri": quote(file.removeprefix(self._folder), safe="/"),
            "uriBaseId": _BASE,
            "index": self._index[file],
        }


def _find_folder(files: Iterable[str]) -> str:
    """Return the common folder of all files, with a slash at its end. Empty if they have no common folder."""
    folders = [file.split("/")[:-1] for file in files]
    shared = takewhile(lambda names: len(set(names)) == 1, zip(*folders, strict=False))
    return "".join(f"{names[0]}/" for names in shared)


def _list_rule_ids(report: Report) -> Iterable[str]:
    """Return the ids of incident kinds, of rules that ran, and of rules that only findings of other versions name."""
    findings = (*report.violations, *report.open_cases, *report.observations)
    kinds = (f"{_INCIDENT}{incident.kind}" for incident in report.incidents)
    return dict.fromkeys((*kinds, *(rule.rule_id for rule in report.rules), *(finding.rule_id for finding in findings)))


def _make_descriptor(rule_id: str) -> dict[str, Any]:
    if (kind := BY_NAME.get(rule_id.removeprefix(_INCIDENT))) is not None:
        return {
            "id": rule_id,
            "shortDescription": {"text": kind.meaning},
            "help": {"text": f"Source: {kind.source}. More: highwater incidents, docs/incident_kinds.md"},
        }
    rule = BY_ID.get(rule_id)
    if rule is None:
        return {"id": rule_id}
    texts, help_text = rule.texts, _make_help(rule)
    return {
        "id": rule_id,
        "shortDescription": {"text": texts.guarantee},
        "fullDescription": {"text": f"{texts.guarantee} Source: {texts.source}. Versions: {texts.versions}."},
        "defaultConfiguration": {"level": "error"},
        "help": {"text": help_text, "markdown": f"{help_text}\n\n[docs/rules.md](docs/rules.md#{rule_id})"},
        "properties": {"tier": texts.tier},
    }


def _make_help(rule: Rule) -> str:
    texts = rule.texts
    shows = " ".join(f"{severity}: {text}" for severity, text in texts.shows)
    return (
        f"{shows} Needs {texts.needs} ({texts.tier}). Why missing lines cannot make a case: {texts.proof} "
        f"More: highwater explain {rule.rule_id}"
    )


def _make_text(text: str) -> dict[str, str]:
    """Return a SARIF message. Braces and brackets are escaped, since SARIF uses them for placeholders and links."""
    shown = plain(text, MESSAGE_CHARS_MAX).replace("{", "{{").replace("}", "}}")
    return {"text": re.sub(r"[\\\[\]]", r"\\\g<0>", shown) if "](" in shown else shown}


def _describe_judged(rule: RuleResult) -> str:
    if rule.verdict == INCONCLUSIVE or not rule.applicable:
        return rule.reason or "The evidence that it needs is not in these logs."
    return f"Kept in these logs: {rule.checked:,} facts judged."


def _make_properties(finding: Finding, severity: str) -> dict[str, Any]:
    names = (
        "topic",
        "partition",
        "leader_epoch",
        "offset_start",
        "offset_end",
        "time",
        "cause",
        "known_bug",
        "records",
    )
    properties = {name: value for name in names if (value := getattr(finding, name)) is not None}
    implied = [
        {"ruleId": other.rule_id, "findingId": other.finding_id, "message": other.message}
        for other in finding.implied[:IMPLIED_MAX]
    ]
    counts = {"implied": implied, "impliedCount": len(finding.implied)} if implied else {}
    return (
        {"severity": severity, "findingId": finding.finding_id, "brokers": list(finding.brokers)} | properties | counts
    )


def _make_incident_properties(incident: Incident) -> dict[str, Any]:
    names = ("severity", "start_time", "end_time", "caused_by")
    properties = {name: value for name in names if (value := getattr(incident, name)) is not None}
    known_bug = {} if incident.known_bug is None else {"known_bug": incident.known_bug.model_dump(mode="json")}
    numbers = {"brokers": list(incident.broker_ids), "partitions": incident.partitions, "figures": incident.figures}
    return {"incidentId": incident.incident_id} | properties | known_bug | numbers


def _make_logical(finding: Finding) -> Iterator[dict[str, Any]]:
    if finding.topic is not None and finding.partition is None:
        yield {"fullyQualifiedName": finding.topic, "kind": "topic"}
    elif finding.topic is not None:
        yield _make_place(f"{finding.topic}-{finding.partition}")


def _make_place(name: str) -> dict[str, Any]:
    return {"fullyQualifiedName": name, "kind": "topic-partition"}


def _make_thread_flows(lines: Sequence[Evidence], places: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return one flow per broker. The order over all flows is the order of the evidence."""
    flows: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for number, (line, place) in enumerate(zip(lines, places, strict=True), 1):
        writer = "unknown" if line.broker_id is None else f"broker {line.broker_id}"
        step: dict[str, Any] = {"location": {"physicalLocation": place}, "executionOrder": number}
        flows[writer].append(step | ({"executionTimeUtc": line.time} if line.time is not None else {}))
    return [{"id": writer, "locations": steps} for writer, steps in flows.items()]


def _make_notification(level: str, text: str) -> dict[str, Any]:
    return {"level": level, "message": _make_text(text)}


def _make_guid(run_id: str) -> str:
    """Return a GUID derived from a run id, since SARIF requires a GUID."""
    return str(uuid5(NAMESPACE_URL, f"highwater:{run_id}"))

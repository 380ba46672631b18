"""report.sarif: what OASIS's schema asks for, what the standard's text asks for, and what the report says."""

from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from jsonschema import Draft4Validator, FormatChecker

from highwater.pipelines.incidents.kinds import KINDS
from highwater.pipelines.report.model import Evidence, Finding, IncidentBug, InputFile, NotCheckable, Report
from highwater.pipelines.report.render_sarif import INPUTS_MAX, SNIPPET_CHARS_MAX, render_sarif
from highwater.pipelines.rules.registry import RULES
from tests.unit.report import sample
from tests.unit.report.hostile import TEXTS

SCHEMA = Path(__file__).parents[2] / "data" / "sarif" / "sarif-schema-2.1.0.json"
VALIDATOR = Draft4Validator(orjson.loads(SCHEMA.read_bytes()), format_checker=FormatChecker())


def rendered(report: Report) -> dict[str, Any]:
    """The one run of a report, which the schema allows."""
    document = orjson.loads(render_sarif(report))
    assert [error.message for error in VALIDATOR.iter_errors(document)] == []
    (run,) = document["runs"]
    return run


def line(number: int, **changes: Any) -> Evidence:
    values = {"file": "/logs/1/server.log", "line_no": number, "byte_offset": 100 * number, "text": f"line {number}"}
    return Evidence(**values | changes)


def violated(*evidence: Evidence, **changes: Any) -> Report:
    return sample.report(verdict="violated", violations=(sample.finding(evidence=evidence, **changes),))


def provenance(**changes: Any) -> Any:
    return sample.report().provenance.model_copy(update=changes)


def test_the_validator_can_refuse() -> None:
    document = orjson.loads(render_sarif(sample.audited()))
    document["runs"][0]["results"][0]["kind"] = "failed"
    assert [error.message for error in VALIDATOR.iter_errors(document)]


def test_every_severity_has_its_kind_and_level() -> None:
    rules = (
        sample.rule(RULES[0].rule_id, verdict="violated", cases=1),
        sample.rule(RULES[1].rule_id),
        sample.rule(RULES[2].rule_id, verdict="inconclusive", reason="a clock was set back"),
        sample.rule(RULES[3].rule_id, verdict="inconclusive", open_cases=1),
    )
    findings = [sample.finding(rule.rule_id) for rule in RULES[:4]]
    run = rendered(
        sample.report(
            verdict="violated",
            rules=rules,
            violations=findings[:1],
            open_cases=findings[3:],
            observations=findings[1:2],
        )
    )
    told = [(result["ruleId"], result["kind"], result["level"]) for result in run["results"]]
    assert told == [
        (RULES[0].rule_id, "fail", "error"),
        (RULES[3].rule_id, "open", "none"),
        (RULES[1].rule_id, "fail", "note"),
        (RULES[1].rule_id, "pass", "none"),
        (RULES[2].rule_id, "open", "none"),
    ]
    assert run["results"][4]["message"]["text"] == "a clock was set back"
    assert all(result["level"] == "none" for result in run["results"] if result["kind"] != "fail")
    assert run["invocations"][0]["exitCode"] == 1


def test_incidents_come_first_each_of_the_rule_of_its_kind() -> None:
    bug = IncidentBug(id="KAFKA-3410", fixed_in="2.0.1")
    severities = ("critical", "major", "minor", "info")
    told = [sample.incident(kind.name, severity=severity) for kind, severity in zip(KINDS, severities, strict=False)]
    named = sample.incident(topic_partitions=("orders-3", "orders-4"), known_bug=bug, caused_by=told[0].incident_id)
    run = rendered(sample.report(incidents=(*told, named), violations=(sample.finding(),)))
    results, declared = run["results"], run["tool"]["driver"]["rules"]
    assert [(result["kind"], result["level"]) for result in results[:4]] == [
        ("fail", "error"),
        ("fail", "warning"),
        ("fail", "note"),
        ("informational", "none"),
    ]
    assert results[5]["ruleId"] == "committed-data-lost"
    assert [declared[result["ruleIndex"]]["id"] for result in results] == [result["ruleId"] for result in results]
    assert declared[0] | {"help": ""} == {
        "id": f"incident/{KINDS[0].name}",
        "shortDescription": {"text": KINDS[0].meaning},
        "help": "",
    }
    text = "Broker 3 died without shutting down. Known bug KAFKA-3410, fixed in 2.0.1. Look at the kernel's log."
    assert results[4]["message"]["text"] == text
    assert results[4]["properties"]["caused_by"] == told[0].incident_id
    (location,) = results[4]["locations"]
    assert [place["fullyQualifiedName"] for place in location["logicalLocations"]] == ["orders-3", "orders-4"]
    assert location["physicalLocation"]["region"]["startLine"] == 7


def test_rules_tell_their_guarantee_and_where_to_read_more() -> None:
    run = rendered(sample.report(rules=tuple(sample.rule(rule.rule_id) for rule in RULES)))
    declared = run["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in declared] == [rule.rule_id for rule in RULES]
    document = (SCHEMA.parents[3] / "docs" / "rules.md").read_text(encoding="utf-8")
    for rule, told in zip(RULES, declared, strict=True):
        assert told["shortDescription"]["text"] == rule.texts.guarantee
        assert f"docs/rules.md#{rule.rule_id}" in told["help"]["markdown"]
        assert f"\n## {rule.rule_id}\n" in document
    assert [result["ruleIndex"] for result in run["results"]] == list(range(len(RULES)))


def test_a_finding_of_a_rule_that_is_no_more_has_a_descriptor() -> None:
    run = rendered(sample.report(violations=(sample.finding("given-up"),)))
    assert run["tool"]["driver"]["rules"][run["results"][0]["ruleIndex"]] == {"id": "given-up"}


def test_places_are_lines_and_bytes_of_files_below_one_folder() -> None:
    lines = (
        line(7, byte_length=41),
        line(0, file="/logs/2/data/orders-0/a b#.log", byte_offset=0),
    )
    inputs = (
        InputFile(file="/logs/1/server.log", sha256="ab" * 32),
        InputFile(file="/logs/3/other.log", sha256="cd" * 32),
    )
    run = rendered(violated(*lines).model_copy(update={"provenance": provenance(inputs=inputs)}))
    assert run["originalUriBaseIds"]["LOGS"]["uri"] == "file:///logs/"
    uris = [artifact["location"]["uri"] for artifact in run["artifacts"]]
    assert uris == ["1/server.log", "2/data/orders-0/a%20b%23.log", "3/other.log"]
    assert [artifact.get("hashes") for artifact in run["artifacts"]] == [
        {"sha-256": "ab" * 32},
        None,
        {"sha-256": "cd" * 32},
    ]
    (location,) = run["results"][0]["locations"]
    assert location["physicalLocation"]["region"] == {
        "byteOffset": 700,
        "startLine": 7,
        "byteLength": 41,
        "snippet": {"text": "line 7"},
    }
    assert location["logicalLocations"] == [{"fullyQualifiedName": "orders-3", "kind": "topic-partition"}]
    steps = run["results"][0]["codeFlows"][0]["threadFlows"][0]["locations"]
    assert steps[1]["location"]["physicalLocation"]["artifactLocation"]["index"] == 1
    assert "startLine" not in steps[1]["location"]["physicalLocation"]["region"]


def test_places_in_a_store_are_below_its_uri() -> None:
    inputs = (InputFile(file="s3a://logs/prod/2/a b.log", sha256="ab" * 32),)
    cited = violated(line(7, file="s3a://logs/prod/1/server.log"))
    run = rendered(cited.model_copy(update={"provenance": provenance(inputs=inputs)}))
    assert run["originalUriBaseIds"]["LOGS"]["uri"] == "s3a://logs/prod/"
    assert [artifact["location"]["uri"] for artifact in run["artifacts"]] == ["1/server.log", "2/a%20b.log"]


def test_evidence_is_a_flow_per_broker_in_one_order() -> None:
    run = rendered(
        violated(
            line(1, broker_id=1, time="2026-11-20T14:05:00.000Z"),
            line(2, broker_id=2, time="2026-11-20T14:05:00.500Z"),
            line(3, broker_id=1, time="2026-11-20T14:05:01.000Z"),
            line(4),
        )
    )
    flows = run["results"][0]["codeFlows"][0]["threadFlows"]
    assert [flow["id"] for flow in flows] == ["broker 1", "broker 2", "unknown"]
    orders = [[step["executionOrder"] for step in flow["locations"]] for flow in flows]
    assert orders == [[1, 3], [2], [4]]
    assert flows[0]["locations"][1]["executionTimeUtc"] == "2026-11-20T14:05:01.000Z"
    assert "executionTimeUtc" not in flows[2]["locations"][0]


def test_a_baseline_is_of_all_results_or_of_none() -> None:
    findings = (sample.finding(is_new=True, fingerprint="f" * 32), sample.finding(is_new=False))
    rules = (sample.rule(is_new=False), sample.rule(RULES[1].rule_id, is_new=True))
    incidents = (sample.incident(is_new=True),)
    before = provenance(run_before="0" * 32)
    run = rendered(sample.report(violations=findings, rules=rules, incidents=incidents, provenance=before))
    states = ["new", "new", "unchanged", "unchanged", "new"]
    assert [result["baselineState"] for result in run["results"]] == states
    assert run["baselineGuid"] != run["automationDetails"]["guid"]
    assert run["results"][0]["partialFingerprints"] == {"incident/v1": "id-broker_died"}
    assert run["results"][1]["partialFingerprints"] == {"finding/v1": "f" * 32}
    without = rendered(sample.audited())
    assert "baselineGuid" not in without
    assert not any("baselineState" in result for result in without["results"])


def test_what_follows_stands_with_its_finding() -> None:
    run = rendered(sample.audited())
    (violation,) = [
        result for result in run["results"] if result["level"] == "error" and "findingId" in result["properties"]
    ]
    assert violation["properties"]["impliedCount"] == 1
    assert violation["properties"]["implied"][0]["ruleId"] == "hw-regression"


def test_what_is_left_out_is_said() -> None:
    long = tuple(line(number, text="x" * 2000) for number in range(1, SNIPPET_CHARS_MAX // 2000 + 4))
    inputs = tuple(InputFile(file=f"/logs/{number}", sha256="ab" * 32) for number in range(INPUTS_MAX + 2))
    run = rendered(violated(*long).model_copy(update={"provenance": provenance(inputs=inputs)}))
    notes = [note["message"]["text"] for note in run["invocations"][0]["toolExecutionNotifications"]]
    assert "3 lines of evidence have their place only; report.json has their text." in notes
    assert "2 more files were read; report.json lists them." in notes
    assert len(run["artifacts"]) == INPUTS_MAX + 1


def test_reasons_and_gaps_are_notifications() -> None:
    gap = NotCheckable(rule_id="hw-above-isr", reason="no such lines", needs="raise {level}")
    coverage = sample.report().coverage.model_copy(update={"not_checkable": (gap,)})
    run = rendered(
        sample.report(verdict="inconclusive", inconclusive=("a gap",), problems=("a: torn",), coverage=coverage)
    )
    told = {note["message"]["text"]: note["level"] for note in run["invocations"][0]["toolExecutionNotifications"]}
    assert told["inconclusive: a gap"] == told["a: torn"] == "warning"
    assert told["cannot be shown: hw-above-isr: no such lines. raise {{level}}"] == "note"
    assert run["invocations"][0]["exitCode"] == 3


@pytest.mark.parametrize("text", TEXTS)
def test_hostile_text_is_text(text: str) -> None:
    run = rendered(sample.hostile(text))
    findings = [result for result in run["results"] if "partialFingerprints" in result]
    assert findings
    for result in findings:
        message = result["message"]["text"]
        assert message.isprintable()
        assert "](" not in message.replace("\\](", "")
        for region in (
            place["physicalLocation"]["region"] for place in result["locations"] if "physicalLocation" in place
        ):
            assert region["snippet"]["text"] == Evidence(file="", line_no=1, byte_offset=0, text=text).text[:2000]


@given(
    st.lists(
        st.builds(
            Evidence,
            file=st.text(max_size=30),
            line_no=st.integers(0, 2**40),
            byte_offset=st.integers(0, 2**40),
            text=st.text(max_size=30),
            broker_id=st.none() | st.integers(-1, 9),
            byte_length=st.none() | st.integers(0, 2**20),
        ),
        max_size=5,
    ),
    st.none() | st.text(max_size=20),
)
@example([line(1, file=""), line(2, file="/"), line(3, file="//a")], None)
def test_whatever_a_finding_holds_the_schema_allows_it(evidence: list[Evidence], topic: str | None) -> None:
    finding: Finding = sample.finding(evidence=tuple(evidence), topic=topic)
    run = rendered(sample.report(violations=(finding,), provenance=provenance(inputs=())))
    steps = [step for flow in run["results"][0].get("codeFlows", []) for step in flow["threadFlows"][0]["locations"]]
    assert all(
        0 <= step["location"]["physicalLocation"]["artifactLocation"]["index"] < len(run["artifacts"]) for step in steps
    )
    flows = [flow for code in run["results"][0].get("codeFlows", []) for flow in code["threadFlows"]]
    orders = [step["executionOrder"] for flow in flows for step in flow["locations"]]
    assert sorted(orders) == list(range(1, len(evidence) + 1))

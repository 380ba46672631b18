"""Which versions have which bug."""

from __future__ import annotations

import re

import pytest

from highwater.pipelines.kafka.releases import release_of
from highwater.pipelines.rules.known_bugs import KNOWN_BUGS, KnownBug, applies, bugs_of
from tests.unit.rules.rule_ids import RULE_IDS

BY_JIRA = {bug.jira: bug for bug in KNOWN_BUGS}


@pytest.mark.parametrize(
    ("jira", "version", "expected"),
    [
        ("KAFKA-1211", "0.10.2.2", True),
        ("KAFKA-1211", "0.11.0.0", False),
        ("KAFKA-13091", "2.6.3", False),
        ("KAFKA-13091", "2.7.2", True),
        ("KAFKA-13091", "2.8.2", True),
        ("KAFKA-13091", "3.0.2", True),
        ("KAFKA-13091", "3.1.0", False),
        ("KAFKA-13091", "3.9.1", False),
        # A fix in each of three branches: 2.7.2 has it although 2.8.0, which is newer, has not.
        ("KAFKA-13141", "2.7.1", True),
        ("KAFKA-13141", "2.7.2", False),
        ("KAFKA-13141", "2.8.0", True),
        ("KAFKA-13141", "2.8.1", False),
        ("KAFKA-13141", "3.0.0", False),
        # A branch older than the first fix was never mended.
        ("KAFKA-14704", "2.7.2", False),
        ("KAFKA-14704", "2.8.2", True),
        ("KAFKA-14704", "3.3.2", True),
        ("KAFKA-14704", "3.4.0", True),
        ("KAFKA-14704", "3.4.1", False),
        ("KAFKA-6937", "1.0.1", True),
        ("KAFKA-6937", "1.0.2", False),
        ("KAFKA-6937", "1.1.0", True),
        ("KAFKA-6937", "1.1.1", False),
        ("KAFKA-15583", "3.6.2", True),
        ("KAFKA-15583", "4.3.1", False),
        ("KAFKA-13091", "2.8.2-SNAPSHOT", True),
    ],
)
def test_a_bug_is_in_the_versions_from_its_first_to_its_fix(jira: str, version: str, expected: bool):
    release = release_of(version)
    assert release is not None
    assert applies(BY_JIRA[jira], release.likely) is expected


@pytest.mark.parametrize("version", [None, "", "unknown", "9.9", "6.2.0"])
def test_an_unknown_version_is_not_known_to_have_a_bug(version: str | None):
    assert bugs_of("late-completion", version) == ()


def test_a_platform_has_the_bugs_of_all_patch_releases_that_it_can_be_built_on():
    bugs = [bug.jira for bug in bugs_of("committed-data-lost", "6.1.0-ccs")]
    assert "KAFKA-15583" in bugs
    assert "KAFKA-13141" not in bugs, "2.7.0 and 2.7.1 have it, 2.7.2 has not"


def test_bugs_of_a_rule_are_those_of_the_version_in_order():
    assert [bug.jira for bug in bugs_of("committed-data-lost", "0.10.2.2")] == [
        "KAFKA-1211",
        "KAFKA-6880",
        "KAFKA-7128",
        "KAFKA-15583",
    ]
    assert "KAFKA-13091" in [bug.jira for bug in bugs_of("late-completion", "2.8.2")]
    assert "KAFKA-14704" in [bug.jira for bug in bugs_of("truncation-below-hw", "2.8.2")]
    assert bugs_of("committed-data-lost", "4.3.1") == ()
    assert bugs_of("no-such-rule", "2.8.2") == ()


def test_a_branch_between_two_fixed_ones_that_was_never_fixed_has_the_bug():
    bug = KnownBug("KAFKA-1", "", ((1, 1, 1), (1, 3, 0)), ("r",), "", "", (1, 0, 0))
    assert [applies(bug, version) for version in ((1, 0, 5), (1, 1, 0), (1, 2, 0))] == [True] * 3
    assert not any(applies(bug, version) for version in ((0, 9, 0), (1, 1, 1), (1, 3, 0), (2, 0, 0)))


@pytest.mark.parametrize("bug", KNOWN_BUGS, ids=lambda bug: bug.jira)
def test_an_entry_is_complete(bug: KnownBug):
    assert re.fullmatch(r"KAFKA-\d+", bug.jira)
    assert bug.title
    assert bug.signature
    assert re.search(r"\b[0-9a-f]{11}\b", bug.source), "names no commit"
    assert bug.fixed_in
    assert list(bug.fixed_in) == sorted(set(bug.fixed_in))
    assert len({fixed[:2] for fixed in bug.fixed_in}) == len(bug.fixed_in)
    assert bug.broken_from is None or bug.broken_from < bug.fixed_in[0]
    assert bug.rule_ids
    assert set(bug.rule_ids) <= RULE_IDS


def test_no_bug_is_listed_twice():
    assert len(BY_JIRA) == len(KNOWN_BUGS)

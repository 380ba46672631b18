"""Bugs of Kafka's replication that an audit can find: the versions that have them, and their signature in logs.

A bug explains a finding and never makes one: a rule with a case asks `bugs_of` whether the running version is known to
have the bug, and names the JIRA. Versions were read from apache/kafka. `fixed_in` names the first release of each
branch that contains the fix, found by its commit. `broken_from` is the first release whose source has the fault, or
None if the fault is as old as its feature. Only releases up to 3.9 could be read that way.
"""

from __future__ import annotations

from functools import partial
from importlib.resources import files

import msgspec

from highwater.pipelines.kafka.releases import Version, evaluate_rule


class KnownBug(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A known bug of Kafka, from ``known_bugs.toml``."""

    jira: str  #: its number, such as ``KAFKA-13091``
    title: str  #: what goes wrong, in a few words
    #: first version of each branch that no longer has it, ascending. A branch without one that is older than the
    #: newest of them keeps the bug
    fixed_in: tuple[Version, ...]
    rule_ids: tuple[str, ...]  #: rules whose cases it can explain
    signature: str  #: what it looks like in logs
    source: str  #: KIP and fix commit in apache/kafka; what is inferred is said
    broken_from: Version | None = None  #: first version that has it; None: every version before the fix


_TABLE = files(__package__).joinpath("known_bugs.toml").read_bytes()
KNOWN_BUGS = msgspec.toml.decode(_TABLE, type=dict[str, tuple[KnownBug, ...]])["bugs"]


def applies(bug: KnownBug, version: Version) -> bool:
    """Return True if a release has the bug."""
    if bug.broken_from is not None and version < bug.broken_from:
        return False
    branch = version[:2]
    same_branch = [fixed for fixed in bug.fixed_in if fixed[:2] == branch]
    if same_branch:
        return version < min(same_branch)
    return branch < max(bug.fixed_in)[:2]


def bugs_of(rule_id: str, version: str | None) -> tuple[KnownBug, ...]:
    """Return the bugs that a version certainly has and that can explain a violation of a rule, by JIRA number.

    Args:
        version: as logged. None or an unknown release has no known bugs.
    """
    bugs = (bug for bug in KNOWN_BUGS if rule_id in bug.rule_ids and evaluate_rule(version, partial(applies, bug)))
    return tuple(sorted(bugs, key=lambda bug: int(bug.jira.rpartition("-")[2])))

"""What changed in Kafka's replication rules, from which version and by which issue: one place per rule.

A rule that differs between versions is a property of `Rules`, with the version of the change and its source; who needs
it asks, and never compares versions itself. A broker is taken to speak the inter-broker protocol of its version.

`leader` has the rules of a partition's leader, `purgatory` those of waiting requests, `truncation` those of followers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeVar

from highwater.pipelines.kafka.releases import Version, release_of, value_of
from highwater.pipelines.kafka.versions.leader import LeaderRules
from highwater.pipelines.kafka.versions.purgatory import PurgatoryRules
from highwater.pipelines.kafka.versions.truncation import TruncationRules

__all__ = ["ASSUMED", "Rules", "Version", "rule_of", "rules_for"]

#: Predictions are made by the rules of this version where the log does not say which release ran.
ASSUMED: Version = (3, 9, 0)

T = TypeVar("T")


@dataclass(frozen=True)
class Rules(LeaderRules, PurgatoryRules, TruncationRules):
    """The rules of one Kafka version."""


_rules = lru_cache(maxsize=256)(Rules)


def rules_for(version: str | None) -> Rules:
    """Return the rules to predict with, of a version as logged; of `ASSUMED` where its release is not known."""
    release = release_of(version)
    return _rules(release.likely if release is not None else ASSUMED)


def rule_of(version: str | None, rule: Callable[[Rules], T]) -> T | None:
    """Return what a rule is, to claim something by it.

    Returns:
        None where the release is not known, and where patch releases that it can be differ in the rule.
    """
    return value_of(version, lambda number: rule(_rules(number)))

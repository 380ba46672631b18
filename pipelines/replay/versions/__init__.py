"""What changed in Kafka's replication rules, from which version and by which issue: one place per rule.

A rule that differs between versions is a property of `Rules`, with the version of the change and its source; who needs
it asks, and never compares versions itself. A broker is taken to speak the inter-broker protocol of its version.

`leader` has the rules of a partition's leader, `purgatory` those of waiting requests, `truncation` those of followers.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from pipelines.replay.versions.leader import LeaderRules
from pipelines.replay.versions.purgatory import PurgatoryRules
from pipelines.replay.versions.truncation import TruncationRules
from pipelines.replay.versions.version import Version, parse_version

__all__ = ["ASSUMED", "Rules", "Version", "parse_version", "rules_for"]

#: Rules are those of this version where the log does not say which one ran.
ASSUMED: Version = (3, 9, 0)


@dataclass(frozen=True)
class Rules(LeaderRules, PurgatoryRules, TruncationRules):
    """The rules of one Kafka version."""


@lru_cache(maxsize=64)
def rules_for(version: str | None) -> Rules:
    """The rules of a version as logged; of `ASSUMED` where it is unknown."""
    return Rules(parse_version(version) or ASSUMED)

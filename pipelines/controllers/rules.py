"""What changed in Kafka's controllers, from which version: the only place here that compares versions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from highwater.pipelines.kafka.releases import Version, Versioned, release_of

#: Later than any: what only ever was added is allowed where the log does not say which version ran.
_NEWEST: Final[Version] = (99, 0, 0)


@dataclass(frozen=True)
class ControllerRules(Versioned):
    """Behaviour of the controller of one Kafka version."""

    @property
    def offline_replica_may_be_ineligible(self) -> bool:
        """Return True if a replica on a dead broker may change from offline straight to ineligible for deletion.

        `ReplicaStateMachine`: up to 2.2 only from ReplicaDeletionStarted, since 2.3.0 from OfflineReplica too.
        """
        return self.version >= (2, 3, 0)

    @property
    def isr_may_be_empty(self) -> bool:
        """Return True if eligible leader replicas may replace an ISR (KIP-966, in the metadata since 3.7)."""
        return self.version >= (3, 7, 0)


def make_controller_rules(version: str | None) -> ControllerRules:
    """Return the rules of the last patch release of a version. Unknown versions get the newest rules."""
    release = release_of(version)
    return ControllerRules(release.newest if release is not None else _NEWEST)

"""Where a replay goes on, and up to where it is final. Pure.

A request is logged when it *ends*, so what a log tells of an instant is complete only some time later. A broker's log
is therefore *sealed* up to `lag_us` before its last line: what lies before is folded once, and the state as of then is
kept; what lies behind is folded again by the next run. A seal is a bet, and never trusted: if a line comes after all
that belongs before it (a file that was copied late, a request that waited longer), the next run goes back to the last
seal that is older by half of `lag_us` than the line. The same if a connection goes on on which nothing had been fetched
since before the seal: then no run knew that none of its fetches was missing. It goes back to the beginning where lines
tell of versions or settings that the past was replayed without.

Nothing here compares two brokers: each one has a seal of its own, on its own clock.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Final, NamedTuple

#: (cluster, broker).
Broker = tuple[str, int]

FIRST: Final = "first"
NEW: Final = "new"
LATE: Final = "late"
CONFIGURATION: Final = "configuration"
FINGERPRINT: Final = "fingerprint"
UNCHANGED: Final = "unchanged"

_SECOND_US: Final = 1_000_000


class Seal(NamedTuple):
    """Up to where the replay of a broker's log is final. Microseconds, exclusive.

    Attributes:
        sealed_us: events of partitions before it are folded into the states.
        sessions_us: the same for fetches; earlier, as what wakes them may still be open.
        waiting_us: the oldest request with an append that is not settled was handled at or after it.
        premises: hash of what lines had told of versions and settings by then.
        since_us: the seal that the run went on from; 0: none. Seals of earlier runs that lie behind it are outdated.
    """

    sealed_us: int
    sessions_us: int
    waiting_us: int
    premises: str
    since_us: int = 0


@dataclass(frozen=True)
class Stamp:
    """What a run leaves with its last commit, for the next one to go on from.

    Attributes:
        run_id: the audit.
        fingerprint: hash of code, rules and configuration that gave the rows.
        carried_version: Delta version of ``state.carried``.
        seals: by broker; one without a seal begins anew.
        inputs: hash of the files, and of what replayed them (`pipelines.base.fingerprint.inputs_fingerprint`).
        audited_version: Delta version of ``state.audited``; None: the rules begin anew.
    """

    run_id: str
    fingerprint: str
    carried_version: int
    seals: Mapping[Broker, Seal] = field(default_factory=dict)
    inputs: str = ""
    audited_version: int | None = None

    @property
    def final_us(self) -> int:
        """Up to where the replay of every broker's log was final at most; 0 where none has a seal."""
        return max((seal.sealed_us for seal in self.seals.values()), default=0)

    def by_cluster(self) -> dict[str, Stamp]:
        """The stamp of each cluster by itself."""
        return {
            name: replace(self, seals={broker: seal for broker, seal in self.seals.items() if broker[0] == name})
            for name in sorted({cluster_id for cluster_id, _ in self.seals})
        }

    def to_json(self) -> str:
        """The stamp as text."""
        seals = [[*broker, *seal] for broker, seal in sorted(self.seals.items())]
        values = [self.run_id, self.fingerprint, self.carried_version, seals, self.inputs, self.audited_version]
        return json.dumps(values, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> Stamp:
        """The stamp of `to_json`; earlier versions of highwater named neither inputs nor ``state.audited``."""
        run_id, fingerprint, version, seals, *others = json.loads(text)
        return cls(run_id, fingerprint, version, {(row[0], row[1]): Seal(*row[2:]) for row in seals}, *others)


#: In the place of a version of ``state.carried``.
OF_ANCHOR: Final = -1


class Start(NamedTuple):
    """Where the replay of a broker's log begins.

    Attributes:
        seal: the seal that it goes on from; None: the beginning.
        carried_version: of ``state.carried``, with the states of that seal; `OF_ANCHOR`: they are the anchor's.
        reason: one of the constants above.
        late_us: the earliest instant of what came late.
    """

    seal: Seal | None
    carried_version: int | None
    reason: str
    late_us: int | None = None

    def told(self) -> str:
        """In words, for whoever watches the run."""
        if self.seal is None:
            return f"from the beginning ({self.reason})"
        since = datetime.fromtimestamp(self.seal.sealed_us // _SECOND_US, UTC)
        return f"from {since:%Y-%m-%d %H:%M:%S} on ({self.reason})"


def starts(
    brokers: Iterable[Broker],
    stamps: Sequence[Stamp],
    fingerprint: str,
    earliest_us: Mapping[Broker, int],
    premises: Callable[[Broker, int], str],
    lag_us: int,
    anchor: Mapping[Broker, Seal] | None = None,
) -> dict[Broker, Start]:
    """Where each broker's replay begins.

    Args:
        brokers: all there are.
        stamps: of earlier runs, the newest first.
        fingerprint: of this run.
        earliest_us: by broker with new files, the earliest instant that they tell of.
        premises: hash of what lines tell by now of a broker and the time before an instant.
        lag_us: see `seal_us`.
        anchor: seals of the run before which days were dropped. There is no beginning but these, and none of a seal
            that lies before them.
    """
    by_broker: dict[Broker, Start] = {}
    last = stamps[0] if stamps else None
    for broker in brokers:
        if last is None:
            by_broker[broker] = Start(None, None, FIRST)
        elif last.fingerprint != fingerprint:
            by_broker[broker] = Start(None, None, FINGERPRINT)
        else:
            by_broker[broker] = _start(broker, stamps, earliest_us.get(broker), premises, lag_us)
    return {broker: _not_before(start, (anchor or {}).get(broker)) for broker, start in by_broker.items()}


def _not_before(start: Start, seal: Seal | None) -> Start:
    if seal is None or (start.seal is not None and start.seal.sealed_us >= seal.sealed_us):
        return start
    return start._replace(seal=seal, carried_version=OF_ANCHOR)


def _start(
    broker: Broker,
    stamps: Sequence[Stamp],
    earliest_us: int | None,
    premises: Callable[[Broker, int], str],
    lag_us: int,
) -> Start:
    fingerprint = stamps[0].fingerprint
    now = stamps[0].seals.get(broker)
    if now is None:
        return Start(None, None, FIRST if earliest_us is not None else UNCHANGED)
    if premises(broker, now.sealed_us) != now.premises:
        return Start(None, None, CONFIGURATION)
    if earliest_us is None or earliest_us >= now.sealed_us:
        return Start(now, stamps[0].carried_version, UNCHANGED if earliest_us is None else NEW)
    holds_us = now.since_us
    for stamp in stamps[1:]:
        seal = stamp.seals.get(broker)
        if stamp.fingerprint != fingerprint or seal is None:
            break
        # What was decided shortly before a seal looked at what followed it, up to the lag.
        settled = seal.sealed_us <= holds_us and seal.sealed_us + lag_us // 2 <= earliest_us
        if settled and premises(broker, seal.sealed_us) == seal.premises:
            return Start(seal, stamp.carried_version, LATE, earliest_us)
        holds_us = min(holds_us, seal.since_us)
    return Start(None, None, LATE, earliest_us)


def seal_us(last_line_us: int, lag_us: int, since_us: int | None) -> int:
    """Up to where a log is sealed, on a whole second; never before where it was sealed already."""
    sealed = (last_line_us - lag_us) // _SECOND_US * _SECOND_US
    return max(sealed, since_us) if since_us is not None else sealed

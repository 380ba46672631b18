"""Which incidents and findings the run before had already. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

#: Verdicts, the worst last.
BY_WEIGHT = ("clean", "inconclusive", "violated")


@dataclass(frozen=True)
class RunBefore:
    """What the audit before the last one came to, in the same lake."""

    run_id: str  #: of that audit
    fingerprints: frozenset[str]  #: of its findings
    verdicts: Mapping[str, str]  #: of its rules, by rule id; of several clusters' the worst
    incident_ids: frozenset[str] = frozenset()  #: of its incidents


def fingerprint(row: Mapping[str, Any], time_us: int | None) -> str:
    """Return the same for a finding in every run that has it: 32 hex digits of rule, severity, place, and where it
    begins.

    What later logs add to a finding is no part of it: its end, its brokers, its message, how many records. The time
    counts only where no offset says where it begins.

    Args:
        row: of ``gold.violations``.
        time_us: its time.
    """
    begins = time_us if row["offset_start"] is None else row["offset_start"]
    place = (row["cluster_id"], row["topic"], row["partition"], row["leader_epoch"])
    return sha256(repr((row["rule_id"], row["severity"], *place, begins)).encode("utf-8", "replace")).hexdigest()[:32]


def worst_by_rule(results: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Return the worst verdict of each rule over clusters, of rows of ``gold.rule_results``."""
    verdicts: dict[str, str] = {}
    for row in results:
        verdicts[row["rule_id"]] = max(
            verdicts.get(row["rule_id"], row["verdict"]), row["verdict"], key=BY_WEIGHT.index
        )
    return verdicts


def run_before(
    run_id: str,
    findings: Iterable[Mapping[str, Any]],
    results: Iterable[Mapping[str, Any]],
    incidents: Iterable[Mapping[str, Any]],
) -> RunBefore:
    """Return the result of an audit by its rows of ``gold.violations`` (times in microseconds), ``gold.rule_results``
    and
    ``gold.incidents``.
    """
    return RunBefore(
        run_id,
        frozenset(fingerprint(row, row["time"]) for row in findings),
        worst_by_rule(results),
        frozenset(row["incident_id"] for row in incidents),
    )

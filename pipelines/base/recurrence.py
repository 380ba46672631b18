"""Incidents and findings that the run before had already. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

#: Verdicts, the worst last.
BY_WEIGHT = ("clean", "inconclusive", "violated")


@dataclass(frozen=True)
class RunBefore:
    """Results of the previous audit of the same lake, to recognise new findings."""

    run_id: str  #: of that audit
    fingerprints: frozenset[str]  #: of its findings
    verdicts: Mapping[str, str]  #: of its rules, by rule id; of several clusters' the worst
    incident_ids: frozenset[str] = frozenset()  #: of its incidents


def fingerprint(row: Mapping[str, Any], time_us: int | None) -> str:
    """Return the hash by which every run recognises a finding: rule, severity, place and start; 32 hex digits.

    Values that later logs change are not included: end, brokers, message, number of records. The time is only included
    without a first offset.

    Args:
        row: row of ``gold.violations``.
        time_us: its time, us. None if unknown.
    """
    begins = time_us if row["offset_start"] is None else row["offset_start"]
    place = (row["cluster_id"], row["topic"], row["partition"], row["leader_epoch"])
    return sha256(repr((row["rule_id"], row["severity"], *place, begins)).encode("utf-8", "replace")).hexdigest()[:32]


def find_worst_verdicts(results: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Return the worst verdict of each rule over all clusters, from rows of ``gold.rule_results``."""
    verdicts: dict[str, str] = {}
    for row in results:
        verdicts[row["rule_id"]] = max(
            verdicts.get(row["rule_id"], row["verdict"]), row["verdict"], key=BY_WEIGHT.index
        )
    return verdicts


def summarize_run(
    run_id: str,
    findings: Iterable[Mapping[str, Any]],
    results: Iterable[Mapping[str, Any]],
    incidents: Iterable[Mapping[str, Any]],
) -> RunBefore:
    """Return the results of an audit, for comparison with a later one.

    Args:
        findings: rows of ``gold.violations``, times in us.
        results: rows of ``gold.rule_results``.
        incidents: rows of ``gold.incidents``.
    """
    return RunBefore(
        run_id,
        frozenset(fingerprint(row, row["time"]) for row in findings),
        find_worst_verdicts(results),
        frozenset(row["incident_id"] for row in incidents),
    )

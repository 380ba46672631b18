"""Advice about an incident, and when it is due. Pure.

An advice that changes something (a setting, a broker, a replica) is a `Remedy`. Its condition reads the state at the
end of the logs and the configured values. A plain text asks for a look at something, and is always due.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from highwater.pipelines.incidents.episodes import before_shutdown
from highwater.pipelines.incidents.facts import Facts, partition_name
from highwater.pipelines.incidents.incident import LoggedIncident

#: Returns True if an advice is due, False if it is done or over, None if the logs do not show it.
Condition = Callable[[Facts, LoggedIncident], bool | None]


def with_due_advice(facts: Facts, incident: LoggedIncident) -> LoggedIncident:
    """Return the incident with the text of its advice, where the advice is a `Remedy`. Empty if it is not due."""
    advice = incident.advice
    if isinstance(advice, str):
        return incident
    is_due = advice.is_due(facts, incident)
    return replace(incident, advice=advice.if_unknown if is_due is None else advice.text if is_due else "")


def is_open(facts: Facts, incident: LoggedIncident) -> bool:
    """Return True if the incident lasts to the end of the logs."""
    return incident.end_us is None


def is_any_offline(facts: Facts, incident: LoggedIncident) -> bool | None:
    """Return True if a partition of the incident has no leader at the end of the logs. None if it names none."""
    if not incident.partitions:
        return None
    return any(
        row["cluster_id"] == incident.cluster_id
        and row["state"] == "offline"
        and row["ended_time"] is None
        and partition_name(row) in incident.partitions
        for row in before_shutdown(facts, facts.availability, "started_time")
    )


def is_any_not_restarted(facts: Facts, incident: LoggedIncident) -> bool:
    """Return True if the logs show no start of at least one of the incident's brokers since the incident began."""
    return any(
        facts.next_start((incident.cluster_id, broker_id), incident.start_us) is None
        for broker_id in incident.broker_ids
    )


def has_setting(key: str, value: str) -> Condition:
    """Return a condition that is True if a topic of the incident has a setting with this value.

    Without an override by the topic, the brokers' value counts. The condition returns None if no line shows the value.
    """

    def has_value(facts: Facts, incident: LoggedIncident) -> bool | None:
        topics = {name.rpartition("-")[0] for name in incident.partitions}
        values = [facts.topic_setting(incident.cluster_id, topic, key) for topic in sorted(topics)]
        if value in values:
            return True
        return None if None in values or not values else False

    return has_value

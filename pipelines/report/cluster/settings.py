"""Settings that brokers have differently. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from highwater.pipelines.report.cluster.parts import Setting

SETTINGS_MAX = 200
#: Each broker has its own.
_OF_EACH_BROKER = frozenset(
    {
        *("broker.id", "node.id", "listeners", "advertised.listeners", "advertised.host.name", "advertised.port"),
        *("log.dir", "log.dirs", "metadata.log.dir", "host.name", "port", "broker.rack", "controller.listener.names"),
        *("ssl.keystore.location", "ssl.truststore.location", "early.start.listeners"),
    }
)


def make_settings(configs: Sequence[Mapping[str, Any]]) -> tuple[tuple[Setting, ...], int]:
    """Return (settings whose last logged value differs between brokers, number beyond the limit).

    Args:
        configs: last value of each key per broker, rows of the query ``configs`` in ``small_tables.sql``.
    """
    values: dict[str, dict[str | None, list[int]]] = defaultdict(lambda: defaultdict(list))
    for row in sorted(configs, key=lambda row: (row["key"], row["broker_id"] if row["broker_id"] is not None else -1)):
        if row["broker_id"] is not None:
            values[row["key"]][row["value"]].append(row["broker_id"])
    differing = [
        Setting(
            key=key,
            by_nature=key in _OF_EACH_BROKER,
            values=tuple(
                (value, tuple(brokers)) for value, brokers in sorted(those.items(), key=lambda item: -len(item[1]))
            ),
        )
        for key, those in sorted(values.items())
        if len(those) > 1
    ]
    ordered = sorted(differing, key=lambda setting: setting.by_nature)
    return tuple(ordered[:SETTINGS_MAX]), max(0, len(ordered) - SETTINGS_MAX)

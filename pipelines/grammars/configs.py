"""Facts of configuration values: a broker's dump at start, a log's overrides, values changed at run time."""

from __future__ import annotations

import re
from collections.abc import Iterator

from highwater.pipelines.grammars.grammar import LogIdent
from highwater.pipelines.grammars.logs import note_future_log
from highwater.pipelines.grammars.record import LineFact, LogRecord
from highwater.pipelines.grammars.typed import make_event_fact
from highwater.pipelines.grammars.values import parse_partition

#: ``key=value`` (2.8 and later), ``key -> value`` (older, and the publishers). Values may hold commas, so a pair ends
#: where the next key begins.
_PAIR = re.compile(r"(?:^|, ?)([a-z][\w.]*)(?: -> |=)", re.ASCII)
#: A value: no blank, no equals sign, so that no other pair can pass for a part of it.
_VALUE = re.compile(r'"[^"]*"|\[[\w, ]*\]|(?:[^\s=>,()"\[\]{}]+(?:,[^\s=>,()"\[\]{}]+)*)?', re.ASCII)
_ARROW_PAIR = re.compile(r"[a-z][\w.]* -> ", re.ASCII)

#: Keys by which a dump says whose it is: KRaft's first.
_IDENTITY = ("node.id", "broker.id")


def _make_rows(scope: str, entity: str | None, values: Iterator[tuple[str, str | None]]) -> tuple[LineFact, ...]:
    return tuple(
        LineFact("broker_configs", {"scope": scope, "entity": entity, "key": key, "value": value})
        for key, value in values
    )


def _parse_pairs(text: str) -> Iterator[tuple[str, str | None]]:
    matches = list(_PAIR.finditer(text))
    if text and (not matches or matches[0].start()):
        raise ValueError(f"no values: {text[:80]}")
    keys = [match[1] for match in matches]
    if len(set(keys)) != len(keys):
        raise ValueError(f"a key twice: {text[:80]}")
    stops = [*(match.start() for match in matches[1:]), len(text)]
    for match, stop in zip(matches, stops, strict=False):
        value = text[match.end() : stop]
        if _VALUE.fullmatch(value) is None:
            raise ValueError(f"no value of {match[1]}: {value[:80]}")
        yield match[1], value[1:-1] if value.startswith('"') else value


def _list_overrides(scope: str, entity: str, text: str) -> tuple[LineFact, ...]:
    """Return one row per override of a topic or broker, for a line that lists all its overrides.

    An empty list gives one row with an empty key, because it ends earlier overrides.
    """
    rows = _make_rows(scope, entity, _parse_pairs(text))
    return rows or (LineFact("broker_configs", {"scope": scope, "entity": entity, "key": "", "value": None}),)


def dump(match: re.Match[str], context: LogIdent, record: LogRecord) -> tuple[LineFact, ...]:
    """Read ``KafkaConfig values:`` and the lines ``key = value`` after it. A value may span several lines."""
    values: list[tuple[str, str | None]] = []
    for line in record.message.split("\n")[1:]:
        key, equals, value = line.strip().partition(" =")
        if line[:1] in "\t " and equals and " " not in key:
            values.append((key, value.strip()))
        elif values and line.strip():
            last, so_far = values[-1]
            values[-1] = last, f"{so_far}\n{line.strip()}"
    named = dict(values)
    entity = next((named[key] for key in _IDENTITY if named.get(key) not in (None, "", "-1")), None)
    return _make_rows("broker", entity, iter(values))


def created_log(match: re.Match[str], context: LogIdent, record: LogRecord) -> tuple[LineFact, ...]:
    """Read the properties of a created log. Since 2.8.1 these are the topic's overrides, before also defaults."""
    partition = parse_partition(match[1])
    future = note_future_log(partition, match[2])
    if _ARROW_PAIR.match(match[3]):
        return *_make_rows("log_all", partition[0], _parse_pairs(match[3])), *future
    return *_list_overrides("log", partition[0], match[3]), *future


def of_topic(match: re.Match[str], context: LogIdent, record: LogRecord) -> tuple[LineFact, ...]:
    """Return all overrides of a topic."""
    return _list_overrides("topic", match["entity"], match["values"])


def of_broker(match: re.Match[str], context: LogIdent, record: LogRecord) -> tuple[LineFact, ...]:
    """Return all overrides of a broker. The default for all brokers has no name; ZooKeeper calls it <default>."""
    return _list_overrides("broker_dynamic", match.groupdict().get("entity", "<default>"), match["values"])


def override(match: re.Match[str], context: LogIdent, record: LogRecord) -> tuple[LineFact, ...]:
    """Read all overrides of a topic or a broker. Overrides of clients, users and addresses give no rows."""
    kind = match["kind"]
    if kind in ("topics", "brokers") and "/" in match["entity"]:
        raise ValueError(f"no entity: {match['entity'][:80]}")
    if kind == "topics":
        return _list_overrides("topic", match["entity"], match["values"])
    if kind == "brokers":
        return _list_overrides("broker_dynamic", match["entity"], match["values"])
    if kind not in ("clients", "users", "ips"):
        raise ValueError(f"no kind of entity: {kind[:80]}")
    return ()


def replayed(match: re.Match[str], context: LogIdent, record: LogRecord) -> tuple[LineFact, ...]:
    """Read one override that a KRaft controller replays. A null value removes the override.

    The metadata log is replayed at every start, with values that were overwritten long ago. A broker applies a value
    only when its publisher logs it. So these rows have scopes of their own.
    """
    kind, entity, key, value = match["kind"], match["entity"], match["key"], match["value"]
    if kind in ("BROKER_LOGGER", "CLIENT_METRICS", "GROUP"):
        return ()
    if kind not in ("TOPIC", "BROKER"):
        raise ValueError(f"no kind of entity: {kind[:80]}")
    if kind == "TOPIC" and not entity:
        raise ValueError("a topic without name")
    topic = entity if kind == "TOPIC" else None
    scope = "topic_record" if kind == "TOPIC" else "broker_record"
    row = {"scope": scope, "entity": entity or "<default>", "key": key, "value": value}
    return LineFact("broker_configs", row), make_event_fact(match, "config_changed", topic=topic)

"""Losses of lines, at random: spans that are cut or filled, and logs, rotated files, APIs and levels that are gone."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from highwater.schemas import silver
from tests.log_tables import LogTables, read_again

LOW_LEVELS: Final = ("TRACE", "DEBUG")
_REQUESTS: Final = "kafka-request"
_SECOND_US: Final = 1_000_000
#: Lengths of what is lost at once, seconds.
_SECONDS: Final = (10, 20, 30, 60)
#: Share of the lines of an API that is lost.
_SHARES: Final = (0.1, 0.2, 1.0)
#: Files of a log that is rotated.
_PIECES: Final = 5
_FILLINGS: Final = {"blanks": b" ", "line feeds": b"\n", "0xFF": b"\xff", "NUL": b"\0"}

Logs = Sequence[LogTables]


class Lost(NamedTuple):
    """Logs after a loss."""

    what: str  #: What was lost, for a message.
    logs: Logs
    records: int  #: Number of records that were lost.


#: Returns None if the logs have no such lines.
Lose = Callable[[Logs, Random], Lost | None]


def at_default_levels(logs: Logs) -> Logs:
    """Return logs as default levels have them: no request logs, and no TRACE and DEBUG in server logs."""
    return [
        log.kept(~_has(log, "level", LOW_LEVELS)) if log.kind in ("server", "other") else log
        for log in logs
        if log.kind != _REQUESTS
    ]


def cut(logs: Logs, random: Random) -> Lost | None:
    """Cut seconds out of logs, their heads or their tails."""
    chosen, whose = _some(logs, random)
    return _without(logs, chosen, _span(chosen, random), whose)


def fill(logs: Logs, random: Random) -> Lost | None:
    """Fill seconds of one log, or its tail, with a byte or with an earlier part of the log."""
    log = random.choice(logs)
    name, is_lost = _span([log], random)
    places = log.lines.column("byte_offset").to_numpy()
    lost = places[is_lost(log)]
    if not len(lost):
        return None
    content = log.content
    later = places[places > lost.max()]
    begin, end = int(lost.min()), int(later.min()) if len(later) else len(content)
    how = random.choice([*_FILLINGS, "stale bytes"])
    if how in _FILLINGS:
        filling = _FILLINGS[how] * (end - begin)
    else:
        filling = (content[:begin] * (1 + (end - begin) // max(1, begin)))[: end - begin]
    with tempfile.TemporaryDirectory() as folder:
        damaged = Path(folder) / Path(log.path).name.removesuffix(".gz")
        damaged.write_bytes(content[:begin] + filling.ljust(end - begin, b" ") + content[end:])
        read = read_again(log, damaged)
    kept = [read if one is log else one for one in logs if one is not log or read is not None]
    return Lost(f"{_name(log)} {name} {how}", [one for one in kept if one is not None], len(lost))


def drop_kind(logs: Logs, random: Random) -> Lost | None:
    """Drop one kind of log of a broker."""
    log = random.choice(logs)
    return _without(logs, [log], ("whole", lambda one: np.ones(one.lines.num_rows, bool)), _name(log))


def drop_rotation(logs: Logs, random: Random) -> Lost | None:
    """Rotate a log into numbered files and drop one between others."""
    log = random.choice([log for log in logs if log.lines.num_rows >= 2 * _PIECES])
    number = np.arange(log.lines.num_rows) * _PIECES // log.lines.num_rows
    lost = random.randrange(1, _PIECES - 1)
    path = log.path.removesuffix(".gz")
    names = [*(f"{path}.{_PIECES - 1 - piece}" for piece in range(_PIECES - 1)), path]
    pieces = [log.kept(number == piece, names[piece]) for piece in range(_PIECES) if piece != lost]
    return Lost(
        Path(names[lost]).name, [*(one for one in logs if one is not log), *pieces], int((number == lost).sum())
    )


def drop_api(logs: Logs, random: Random) -> Lost | None:
    """Drop a share of the requests of an API, of one broker or all, for a while or wholly."""
    of_brokers = [log for log in logs if log.kind == _REQUESTS]
    if not of_brokers:
        return None
    chosen = of_brokers if random.random() < 0.4 else [random.choice(of_brokers)]
    api = random.choice([*(["PRODUCE"] * 3), "FETCH", "FETCH of followers"])
    share = random.choice(_SHARES) if api == "PRODUCE" else 1.0
    name, is_in_span = _span(chosen, random, whole=0.5)
    numbers = np.random.default_rng(random.getrandbits(32))

    def is_lost(log: LogTables) -> Any:
        return is_in_span(log) & _is_of_api(log, api) & (numbers.random(log.lines.num_rows) < share)

    return _without(logs, chosen, (name, is_lost), f"{_whose(chosen, of_brokers)} {share:.0%} of {api}")


def drop_level(logs: Logs, random: Random) -> Lost | None:
    """Drop TRACE, DEBUG or both of server logs, of one broker or all, for a while or wholly."""
    levels = random.choice([("TRACE",), ("DEBUG",), LOW_LEVELS])
    having = [log for log in logs if log.kind == "server" and _has(log, "level", levels).any()]
    if not having:
        return None
    chosen = having if random.random() < 0.5 else [random.choice(having)]
    name, is_in_span = _span(chosen, random, whole=0.4)
    lost = (name, lambda log: is_in_span(log) & _has(log, "level", levels))
    return _without(logs, chosen, lost, f"{_whose(chosen, having)} {'+'.join(levels)}")


LOSSES: Final[Mapping[str, Lose]] = {
    "cut": cut,
    "fill": fill,
    "kind of log": drop_kind,
    "rotation": drop_rotation,
    "API": drop_api,
    "level": drop_level,
}

#: How lines are chosen: for a message, and a boolean for each record of a log.
_Span = tuple[str, Callable[[LogTables], Any]]


def _some(logs: Logs, random: Random) -> tuple[Logs, str]:
    """Choose one log, this kind of log of all brokers, or all logs of its broker."""
    log = random.choice(logs)
    how = random.choices(["one", "kind", "broker"], (6, 3, 1))[0]
    if how == "kind":
        return [one for one in logs if one.kind == log.kind], f"all {log.kind}"
    if how == "broker":
        return [one for one in logs if one.span.broker_id == log.span.broker_id], f"broker {log.span.broker_id}"
    return [log], _name(log)


def _span(logs: Logs, random: Random, whole: float = 0.0) -> _Span:
    """Choose seconds within logs, or their heads, tails or all of them."""
    if random.random() < whole:
        return "whole", lambda log: np.ones(log.lines.num_rows, bool)
    times = np.concatenate([log.times_us[log.times_us >= 0] for log in logs])
    first, last = int(times.min()), int(times.max())
    seconds = random.choice(_SECONDS)
    length = min(seconds * _SECOND_US, (last - first) // 2)
    how = random.choices(["seconds", "tail", "head"], (6, 2, 1))[0]
    begin = {"tail": last - length + 1, "head": first}.get(how, random.randint(first, last - length))
    name = f"{length / _SECOND_US:.0f} s" if how == "seconds" else f"{how} of {length / _SECOND_US:.0f} s"
    return (
        f"{name} at {(begin - first) / _SECOND_US:.0f}",
        lambda log: (log.times_us >= begin) & (log.times_us < begin + length),
    )


def _without(logs: Logs, chosen: Logs, lost: _Span, whose: str) -> Lost | None:
    name, is_lost = lost
    kept: list[LogTables] = []
    records = 0
    for log in logs:
        if log not in chosen:
            kept.append(log)
            continue
        gone = is_lost(log)
        records += int(gone.sum())
        if not gone.all():
            kept.append(log.kept(~gone) if gone.any() else log)
    return Lost(f"{whose} {name}", kept, records) if records and kept else None


def _has(log: LogTables, column: str, values: Sequence[str]) -> Any:
    is_one = pc.is_in(log.lines.column(column), value_set=pa.array(list(values), pa.string()))
    return is_one.combine_chunks().to_numpy(zero_copy_only=False)


def _is_of_api(log: LogTables, api: str) -> Any:
    table = log.tables.get((silver.PRODUCE_REQUESTS if api == "PRODUCE" else silver.FETCH_REQUESTS).name)
    if table is None:
        return np.zeros(log.lines.num_rows, bool)
    if api == "FETCH of followers":
        table = table.filter(pc.field("replica_id") >= 0)
    return np.isin(log.lines.column("byte_offset").to_numpy(), table.column("byte_offset").to_numpy())


def _name(log: LogTables) -> str:
    return f"{log.kind} of {log.span.broker_id}"


def _whose(chosen: Logs, having: Logs) -> str:
    return "all" if len(chosen) == len(having) else f"broker {chosen[0].span.broker_id}"

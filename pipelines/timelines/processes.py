"""Processes of a node, from its own lines. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from highwater.pipelines.timelines.rows import Node, Row, Rows, node

#: Longest time from the first line of a process to the line about its start, microseconds.
BOOT_US = 20_000_000
#: Shortest silence that is known, microseconds.
SILENCE_US = 2_000_000
#: A broker has a steady rhythm if it wrote steadily for this long per silence that followed, microseconds. At INFO a
#: broker writes in bursts, and a silence follows nearly each one.
_RHYTHM_US = 15_000_000
#: Share of the steps before a silence with a line, of a node that writes steadily.
STEADY_SHARE = 0.9
#: A node that ends itself logs why at most this long before its last line, or before it shuts down, microseconds.
_FATAL_US = 10_000_000
STOPPING = ("shutting_down", "signal", "controlled_shutdown")
_CLEAN = "since clean shutdown file was found"
_UNCLEAN = "since no clean shutdown file was found"


class OwnLines(NamedTuple):
    """When a node's first and last lines were logged, us."""

    first_us: int
    last_us: int
    is_excerpt: bool = False  #: Lines were left out, so that the absence of a line proves nothing.
    shows_starts: bool = True  #: Lines about starts of processes are here, if there were any.


@dataclass
class Process:
    """One process of a node."""

    begin_us: int | None  #: First line. None if it was there before the logs.
    before_us: int | None = None  #: Last line of the previous process. None if unknown.
    is_exact: bool = False  #: The process before wrote steadily: it ended with its last line.
    starting: Row | None = None
    started: Row | None = None
    stopping: Row | None = None
    stopped: Row | None = None
    fatal: Row | None = None  #: Last line about why it ends itself.
    loads: str = ""  #: "clean" or "unclean", by the log loading of this process; empty if not shown.

    @property
    def up_us(self) -> int | None:
        """Return when the node was up. None if no line shows it."""
        return None if self.started is None else int(self.started["time"])

    @property
    def has_run(self) -> bool:
        """Return True if the process opened its logs. Until then, the marker of an earlier clean shutdown stays."""
        return self.begin_us is None or self.started is not None or bool(self.loads)

    def has_halted(self, end_us: int) -> bool:
        """Return True if the process logged shortly before `end_us` why it halts."""
        return self.fatal is not None and bool(end_us - _FATAL_US <= self.fatal["time"])

    @property
    def settled_us(self) -> int:
        """Return the time up to which silences belong to the start, microseconds since the epoch."""
        if self.begin_us is None:
            return 0
        up_us = self.up_us
        is_prompt = up_us is not None and up_us - self.begin_us <= BOOT_US
        return up_us + 3_000_000 if is_prompt and up_us is not None else self.begin_us + BOOT_US


def is_steady(row: Row) -> bool:
    """Return True if a node wrote steadily before a silence, and silences rarely follow its steady writing."""
    has_rhythm = row["steady_us"] >= _RHYTHM_US * max(row["steady_silences"], 1)
    return bool(has_rhythm and (row["share_before"] or 0) >= STEADY_SHARE)


def processes(
    lifecycle: Rows, silences: Rows, first_boots: Mapping[Node, int], own_lines: Mapping[Node, OwnLines]
) -> dict[Node, list[Process]]:
    """Return the processes of each node with lines, in order.

    Args:
        silences: times without a line, as in `pipelines.incidents.facts.Facts.silences`.
        first_boots: start of the process with which a node's lines begin.
    """
    events: dict[Node, list[Row]] = defaultdict(list)
    gaps: dict[Node, list[Row]] = defaultdict(list)
    for row in lifecycle:
        if row["broker_id"] is not None:
            events[node(row)].append(row)
    for row in silences:
        gaps[node(row)].append(row)
    of_nodes = {}
    for of_node in sorted({*events, *gaps, *own_lines}):
        begun = _begins(events[of_node], gaps[of_node], first_boots.get(of_node), own_lines.get(of_node))
        _add_events(begun, events[of_node])
        of_nodes[of_node] = begun
    return of_nodes


def _begins(events: Sequence[Row], gaps: Sequence[Row], first_boot: int | None, own: OwnLines | None) -> list[Process]:
    """Return processes with only their start set."""
    starts: list[int] = []
    turns: list[int] = []
    has_started = False
    for row in events:
        time, event = row["time"], row["event"]
        # "started" behind another one or an end: the line about the start is not in these logs.
        if event == "starting" or (event == "started" and has_started):
            starts.append(time)
        if event in ("starting", "started", "shut_down", *STOPPING):
            has_started = event != "starting"
            turns.append(time)
    boots = [row for row in gaps if row["is_boot"]]
    begun = [Process(row["end_time"], row["start_time"], is_steady(row)) for row in boots]
    boots_us = sorted([*([] if first_boot is None else [first_boot]), *(row["end_time"] for row in boots)])
    for time in sorted(set(starts)):
        if any(row["end_time"] <= time <= row["end_time"] + BOOT_US for row in boots):
            continue
        # A process that waits for a quorum logs its start late. No line in between is about another process.
        boot_us = max((boot for boot in boots_us if boot <= time), default=None)
        if boot_us is not None and not any(boot_us <= turn < time for turn in turns):
            continue
        before = [turn for turn in turns if turn < time]
        begun += _begin_before(events, gaps, time, before)
    begun.sort(key=lambda process: process.begin_us or 0)
    return _with_first(begun, events, gaps, first_boot, own)


def _begin_before(events: Sequence[Row], gaps: Sequence[Row], time: int, turns: Sequence[int]) -> list[Process]:
    """Return the process of a line about a start. It begins after the last silence before that line. Empty if known."""
    ended = max((row["time"] for row in events if row["time"] < time and _is_end(row)), default=0)
    since = max(time - BOOT_US, ended)
    before = [row for row in gaps if since <= row["end_time"] <= time + 1_000_000]
    if before:
        gap = max(before, key=lambda row: row["end_time"])
        return [Process(gap["end_time"], gap["start_time"], is_steady(gap))]
    return [Process(time, turns[-1])] if turns and (ended or time - turns[-1] > BOOT_US) else []


def _is_end(row: Row) -> bool:
    return row["event"] in (*STOPPING, "shut_down")


def _with_first(
    begun: list[Process], events: Sequence[Row], gaps: Sequence[Row], first_boot: int | None, own: OwnLines | None
) -> list[Process]:
    """Return processes, including the process with which the logs begin.

    A process may log some lines before its start.
    """
    times = [row["time"] for row in events if row["event"] in ("starting", "started", "shut_down", *STOPPING)]
    times += [row["start_time"] for row in gaps]
    first_us = min([*times, *([] if own is None else [own.first_us])], default=None)
    if first_us is None:
        return begun
    if begun and begun[0].begin_us is not None and begun[0].begin_us - first_us <= BOOT_US and first_boot is None:
        is_first = not any(row["time"] < begun[0].begin_us and _is_end(row) for row in events)
        if is_first:
            begun[0] = Process(first_us)
            return begun
    start = next((row["time"] for row in events if row["event"] == "starting"), None)
    if first_boot is None and start is not None and start - first_us <= BOOT_US and _is_before(start, begun):
        return [Process(first_us), *begun]
    return [Process(first_boot), *begun]


def _is_before(time: int, begun: Sequence[Process]) -> bool:
    return not begun or begun[0].begin_us is None or time < begun[0].begin_us


def _add_events(begun: Sequence[Process], events: Sequence[Row]) -> None:
    """Add to each process the lines about its start and its end."""
    for number, process in enumerate(begun):
        since = process.begin_us or 0
        until = begun[number + 1].begin_us if number + 1 < len(begun) else None
        for row in events:
            if row["time"] < since or (until is not None and row["time"] >= until):
                continue
            event = row["event"]
            if event == "starting" and process.starting is None:
                process.starting = row
            elif event == "started" and process.started is None:
                process.started = row
            elif event in STOPPING and process.stopping is None:
                process.stopping = row
            elif event == "shut_down":
                process.stopped = row
            elif event == "fatal":
                process.fatal = row
            elif event == "log_loading" and (process.up_us is None or row["time"] <= process.up_us):
                detail = row["detail"] or ""
                if _CLEAN in detail or (_UNCLEAN in detail and not process.loads):
                    process.loads = "clean" if _CLEAN in detail else "unclean"

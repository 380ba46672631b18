"""Mutants of fetches, their answers, and lines about high watermarks."""

from __future__ import annotations

from tests.spark.mutants.changes import Body, Change, Where, alter, answers, asked, edit, repeat, swap
from tests.spark.mutants.mutant import OPEN_TOO, Mutant

ID39 = "S9o5dLJeQvGFTf8kHnpwBQ"
ID43 = "ki6VGVPCS8SYV7ydqrRAOw"
UPDATED = r"\[Partition {} broker=\d\] High watermark updated"


def fetch(topic: str, partition: int, client: str, broker: int, nth: int | None = None) -> Where:
    """Fetches that name a partition, the topic by name or id, and are answered about it."""
    parts = r"\[(?:\{[^}]*\},)*"
    return Where(
        rf'"clientId":"{client}","requestApiKeyName":"FETCH".*"request":.*"topic(?:Id)?":"{topic}",'
        rf'"partitions":{parts}\{{"partition":{partition},"currentLeaderEpoch":.*"response":.*'
        rf'"topic(?:Id)?":"{topic}","partition(?:Response)?s":{parts}\{{"partition(?:Index)?":{partition},"errorCode":0',
        broker,
        nth=nth,
    )


def told(where: Where, topic: str, partition: int, by: int) -> Change:
    """The answer tells another high watermark."""

    def change(body: Body) -> None:
        for part in answers(body, topic, partition):
            part["highWatermark"] += by
            part["lastStableOffset"] = min(part["lastStableOffset"], part["highWatermark"])

    return edit(where, change)


def moved(where: Where, topic: str, partition: int, by: int) -> Change:
    """The fetch is at another offset."""

    def change(body: Body) -> None:
        for part in asked(body, topic, partition):
            part["fetchOffset"] += by

    return edit(where, change)


def held(where: Where, topic: str, partition: int, offset: int) -> Change:
    """No fetch is beyond an offset."""

    def change(body: Body) -> None:
        for part in asked(body, topic, partition):
            part["fetchOffset"] = min(part["fetchOffset"], offset)

    return edit(where, change)


def named(where: Where, topic: str, partition: int, epoch: int) -> Change:
    """The fetch names another leader epoch."""

    def change(body: Body) -> None:
        for part in asked(body, topic, partition):
            part["currentLeaderEpoch"] = epoch

    return edit(where, change)


def given(where: Where, topic: str, partition: int, by: int) -> Change:
    """A consumer asks beyond what is committed, and gets records."""

    def change(body: Body) -> None:
        for part in asked(body, topic, partition):
            part["fetchOffset"] += by
        for part in answers(body, topic, partition):
            part["recordsSizeInBytes"] = 500

    return edit(where, change)


F39 = fetch(ID39, 2, "broker-3-fetcher-0", 2)
F39_20 = fetch(ID39, 2, "broker-3-fetcher-0", 2, 20)
F43_15 = fetch(ID43, 2, "broker-1-fetcher-0", 3, 15)
LOST = fetch("transfers", 0, "broker-3-fetcher-0", 1)
LOST_9 = fetch("transfers", 0, "broker-3-fetcher-0", 1, 9)
ZK = fetch("payments", 1, "broker-1-fetcher-0", 2)
ZK_20 = fetch("payments", 1, "broker-1-fetcher-0", 2, 20)
BACK, ABOVE, STALE, EARLY = "hw-regression", "hw-above-isr", "stale-epoch-accepted", "ack-before-commit"

MUTANTS = (
    Mutant("an answer's high watermark is 10 lower", "kraft39", told(F39_20, ID39, 2, -10), BACK, partition=2),
    Mutant("an answer's high watermark is 3 lower", "kraft39", told(F39_20, ID39, 2, -3), BACK, partition=2),
    Mutant(
        "an answer's high watermark is 6 lower", "duplicate", told(F43_15, ID43, 2, -6), BACK, OPEN_TOO, partition=2
    ),
    Mutant(
        "an answer's high watermark is lower, without topic ids",
        "lostwake",
        told(LOST_9, "transfers", 0, -5),
        BACK,
        OPEN_TOO,
        "transfers",
        0,
    ),
    Mutant("an answer's high watermark is lower", "zk28", told(ZK_20, "payments", 1, -7), BACK, OPEN_TOO, partition=1),
    Mutant(
        "a leader's line goes down",
        "duplicate",
        alter(Where(UPDATED.format("payments-2"), nth=8), r"to \(offset=\d+", "to (offset=1600"),
        BACK,
        OPEN_TOO,
        partition=2,
    ),
    Mutant(
        "a leader passes over the same offset again",
        "duplicate",
        repeat(Where(UPDATED.format("payments-2"), nth=3), after_ms=400),
        BACK,
        OPEN_TOO,
        partition=2,
    ),
    Mutant(
        "a leader's line goes down, without topic ids",
        "zk28",
        alter(Where(UPDATED.format("payments-2"), nth=8), r"to \(offset=\d+", "to (offset=300"),
        BACK,
        OPEN_TOO,
        partition=2,
    ),
    Mutant("neighbouring lines of a leader in another order", "duplicate", swap(Where(UPDATED.format("payments-2")))),
    Mutant("a leader's line twice at one instant", "duplicate", repeat(Where(UPDATED.format("payments-2"), nth=4))),
    Mutant("an answer 50 above the follower", "kraft39", told(F39_20, ID39, 2, 50), ABOVE, partition=2),
    Mutant("a follower is 20 lower than it was", "kraft39", moved(F39_20, ID39, 2, -20), ABOVE, partition=2),
    Mutant("an answer 50 above the follower", "duplicate", told(F43_15, ID43, 2, 50), ABOVE, OPEN_TOO, partition=2),
    Mutant(
        "an answer 30 above the follower",
        "lostwake",
        told(LOST_9, "transfers", 0, 30),
        ABOVE,
        OPEN_TOO,
        "transfers",
        0,
    ),
    Mutant(
        "a leader's line 40 above its followers",
        "duplicate",
        alter(Where(UPDATED.format("payments-2"), nth=5), r"to \(offset=\d+", "to (offset=1745"),
        ABOVE,
        OPEN_TOO,
        partition=2,
    ),
    Mutant(
        "a leader's line above its followers",
        "lostwake",
        alter(Where(UPDATED.format("transfers-0"), nth=8), r"to \(offset=\d+", "to (offset=55"),
        ABOVE,
        OPEN_TOO,
        "transfers",
        0,
    ),
    Mutant("a follower stands still", "kraft39", held(F39, ID39, 2, 650), ABOVE, partition=2),
    Mutant("a follower stands still", "lostwake", held(LOST, "transfers", 0, 16), ABOVE, OPEN_TOO, "transfers", 0),
    Mutant("a follower stands still", "zk28", held(ZK, "payments", 1, 400), ABOVE, OPEN_TOO, partition=1),
    Mutant(
        "a follower stands still until its leader steps down",
        "duplicate",
        held(Where(r'"clientId":"broker-1-fetcher-0","requestApiKeyName":"FETCH"', 3), ID43, 2, 1690),
        EARLY,
        OPEN_TOO,
        partition=2,
    ),
    Mutant(
        "a follower takes a high watermark above its leader's",
        "lostwake",
        alter(Where(r"Follower set replica high watermark for partition transfers-0 to 20"), "to 20", "to 120"),
        "follower-hw-above-leader",
        OPEN_TOO,
        "transfers",
        0,
    ),
    Mutant(
        "a follower takes a high watermark above its leader's",
        "zk28",
        alter(
            Where(r"Follower set replica high watermark for partition payments-1 to 397", 1, nth=0), "to 397", "to 497"
        ),
        "follower-hw-above-leader",
        OPEN_TOO,
        partition=1,
    ),
    Mutant("a fetch of an epoch to come is answered", "kraft39", named(F39_20, ID39, 2, 5), STALE, partition=2),
    Mutant(
        "a fetch of an epoch of the past is answered",
        "duplicate",
        named(F43_15, ID43, 2, 2),
        STALE,
        OPEN_TOO,
        partition=2,
    ),
    Mutant(
        "a consumer is given what is not committed",
        "kraft39",
        given(fetch(ID39, 1, r"c\d", 1, 5), ID39, 1, 400),
        "read-above-isolation",
        OPEN_TOO,
        partition=1,
    ),
    Mutant(
        "a replica joined the ISR and was far behind",
        "lostwake",
        held(Where(fetch("transfers", 0, "broker-2-fetcher-0", 1).text, 1, since="15:53:04.640"), "transfers", 0, 15),
        "isr-join-behind-hw",
        OPEN_TOO,
        "transfers",
        0,
    ),
    Mutant("all fetches of one follower twice", "kraft39", repeat(F39)),
    Mutant("neighbouring fetches in another order", "kraft39", swap(Where(r'fetcher-0","requestApiKeyName":"FETCH"'))),
)

"""Changes that no rule may take for a fault: clocks apart, repeated and missing lines."""

from __future__ import annotations

from tests.spark.mutants.changes import Where, alter, drop, repeat, same, shift
from tests.spark.mutants.mutant import Mutant

ALL = ""
STATE = r"\[Broker id=\d\] (?:Leader|Follower) payments"

MUTANTS = (
    *(
        Mutant(f"nothing: {part}", part, same)
        for part in ("kip101", "unclean", "lostwake", "duplicate", "kraft39", "zk28")
    ),
    Mutant("one broker's clock 800 ms ahead", "kraft39", shift(Where(ALL, 3), 800)),
    Mutant("one broker's clock 800 ms behind", "zk28", shift(Where(ALL, 2), -800)),
    Mutant("one broker's clock 500 ms ahead", "unclean", shift(Where(ALL, 1), 500)),
    Mutant("lines about epochs twice", "kraft39", repeat(Where(STATE))),
    Mutant("lines about epochs twice, 2 ms apart", "zk28", repeat(Where(STATE), after_ms=2)),
    Mutant("all lines of requests twice", "lostwake", repeat(Where("^Completed request"))),
    Mutant("no line about a leader's epoch", "kraft39", drop(Where(r"starts at leader epoch"))),
    Mutant("no line about the ISR", "lostwake", drop(Where(r"ISR updated to"))),
    Mutant("no broker's version and configuration", "lostwake", drop(Where(r"Kafka version|KafkaConfig values"))),
    Mutant(
        "a leader's log is longer than its predecessor's",
        "kraft39",
        alter(Where(r"Leader payments-2 .*starts at leader epoch 1 "), "from offset 690", "from offset 693"),
    ),
)

"""What a mutant is."""

from __future__ import annotations

from dataclasses import dataclass

from tests.spark.mutants.changes import Change


@dataclass(frozen=True)
class Mutant:
    """A real log with a fault written into it."""

    name: str  #: what was done
    part: str  #: slice that it was done to
    change: Change  #: how
    #: rule that must find it; None if all must stay silent: no violation that the undamaged slice has not
    rule: str | None = None
    #: with which severity; the weaker ones are enough where a topic id is not in the log
    severity: tuple[str, ...] = ("violation",)
    #: topic, partition: where
    topic: str = "payments"
    partition: int | None = None

    @property
    def variant(self) -> str:
        """Name of the variant."""
        return f"{self.part}: {self.name}"


OPEN_TOO = ("violation", "open")
#: These logs do not prove it: a line that would make it right may be missing.
LEFT_OPEN = ("open",)
OBSERVED = ("observation",)

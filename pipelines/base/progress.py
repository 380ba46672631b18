"""How long a run still takes, as far as runs before tell: seconds of each stage by how much text there is. Pure."""

from __future__ import annotations

from collections.abc import Mapping

#: Of each stage on two cores: seconds of any run, and of a megabyte of text (docs/performance.md, 1 to 866 MB).
_SECONDS: Mapping[str, tuple[float, float]] = {
    "start Spark": (6.0, 0.0),
    "ingest": (0.5, 0.03),
    "parse": (0.5, 0.06),
    "quality": (0.3, 0.004),
    "replay": (2.0, 0.18),
    "report": (0.5, 0.008),
}
#: What is added where a stage takes longer than was thought: a part of what it has taken.
_OVERDUE = 0.25
#: No machine is this much faster or slower for long; a first stage may seem to be.
_FACTOR_MIN, _FACTOR_MAX = 0.2, 10.0


class Plan:
    """The stages of a run, and how fast this machine is beside what was measured.

    Args:
        stages: in their order; those of which nothing is known count for nothing.
        text_bytes: of the logs that are new, roughly.
    """

    def __init__(self, stages: tuple[str, ...], text_bytes: int) -> None:
        self.text_bytes = text_bytes
        self.stages = stages
        self._expected = {
            stage: once + each * text_bytes / 1e6
            for stage in stages
            for once, each in [_SECONDS.get(stage, (0.0, 0.0))]
        }
        self._taken: dict[str, float] = {}

    def end(self, stage: str, seconds: float) -> None:
        """A stage has ended, as planned or not."""
        if stage in self._expected:
            self._taken[stage] = seconds

    def position(self, stage: str) -> int | None:
        """The number of a stage, from 1; None where it is none of the plan, or runs again for a later batch."""
        return self.stages.index(stage) + 1 if stage in self._expected and stage not in self._taken else None

    def left_s(self, stage: str, elapsed_s: float) -> float | None:
        """Seconds to the end of the last stage, where one has run for so long; None where nothing is known."""
        if self.position(stage) is None:
            return None
        factor = self._factor()
        later = sum(seconds for name, seconds in self._expected.items() if name != stage and name not in self._taken)
        of_stage = self._expected[stage] * factor - elapsed_s
        return later * factor + (of_stage if of_stage > 0 else _OVERDUE * elapsed_s)

    def _factor(self) -> float:
        expected = sum(self._expected[stage] for stage in self._taken)
        if not expected:
            return 1.0
        return min(max(sum(self._taken.values()) / expected, _FACTOR_MIN), _FACTOR_MAX)


def shown(plan: Plan | None, stage: str, elapsed_s: float) -> str:
    """A line for who watches."""
    text = f"{stage}  {elapsed_s:.0f} s"
    left = None if plan is None else plan.left_s(stage, elapsed_s)
    if plan is None or left is None:
        return text
    size = f", {plan.text_bytes / 1e6:,.0f} MB of text" if plan.text_bytes >= 1e6 else ""
    return f"{text}, about {_rough(left)} left (step {plan.position(stage)} of {len(plan.stages)}{size})"


def _rough(seconds: float) -> str:
    """To the nearest of what is worth saying."""
    if seconds >= 90:
        return f"{seconds / 60:.0f} min"
    return f"{max(5 * round(seconds / 5), 5)} s"

"""All scenarios by name, and how one is run from beginning to end."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.testbed.fetch import fetch_all
from tests.testbed.log_settings import HOURLY, MINUTELY
from tests.testbed.pack import pack
from tests.testbed.processes import bounded
from tests.testbed.release import KRAFT, ZOOKEEPER, mode_for
from tests.testbed.scenarios.matrix import brief, matrix
from tests.testbed.scenarios.migration import migration
from tests.testbed.scenarios.rolling_upgrade import rolling_upgrade
from tests.testbed.scenarios.rotation import rotation
from tests.testbed.scenarios.run import Request, Run
from tests.testbed.truth import write_lost

#: A run that is stuck ends after its time and this.
SPARE_S = 240


class ScenarioError(Exception):
    """A scenario that is not there, or not for these releases."""


@dataclass(frozen=True)
class Scenario:
    """What can be run.

    Attributes:
        play: does it.
        seconds: how long it takes; None where ``minutes`` says.
        releases: how many it passes through.
        modes: in which it may begin.
        controllers: KRaft controllers that are nodes of their own.
        rotation: how often log files rotate.
    """

    play: Callable[[Run], None]
    seconds: int | None
    releases: int = 1
    modes: tuple[str, ...] = (KRAFT, ZOOKEEPER)
    controllers: int = 0
    rotation: str = HOURLY


SCENARIOS = {
    "brief": Scenario(brief, 60),
    "matrix": Scenario(matrix, 100),
    "rolling-upgrade": Scenario(rolling_upgrade, 150, releases=2),
    "zk-to-kraft": Scenario(migration, 200, modes=(ZOOKEEPER,), controllers=1),
    "rotation": Scenario(rotation, None, rotation=MINUTELY),
}


def run_scenario(request: Request, corpus: Path) -> None:
    """Fetch, run, pack. No process is left, however it ends.

    Raises:
        ScenarioError, ValueError: the scenario cannot be run like this.
        FetchError, StartError, Interrupted: as they say.
    """
    scenario = scenario_of(request)
    mode = mode_for(request.releases, scenario.modes, request.mode)
    request = dataclasses.replace(request, mode=mode)
    fetch_all(request.releases, mode == ZOOKEEPER, request.jars)
    seconds = request.minutes * 60 if scenario.seconds is None else scenario.seconds
    with bounded(round(seconds) + SPARE_S):
        run = Run(request, controllers=scenario.controllers, rotation=scenario.rotation)
        try:
            scenario.play(run)
        finally:
            run.close()
    pack(request.run, request.jars, corpus)
    write_lost(corpus)


def scenario_of(request: Request) -> Scenario:
    """The scenario that is asked for.

    Raises:
        ScenarioError: there is none of that name, or it takes another number of releases.
    """
    scenario = SCENARIOS.get(request.scenario)
    if scenario is None:
        raise ScenarioError(f"no scenario {request.scenario}; there are {', '.join(sorted(SCENARIOS))}")
    if len(request.releases) != scenario.releases:
        raise ScenarioError(f"{request.scenario} takes {scenario.releases} releases, not {len(request.releases)}")
    return scenario

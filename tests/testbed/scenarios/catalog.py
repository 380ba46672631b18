"""All scenarios by name, and how one is run from beginning to end."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.testbed.cluster import Cluster
from tests.testbed.fetch import fetch_all, further_jar
from tests.testbed.log_settings import HOURLY, MINUTELY
from tests.testbed.pack import pack
from tests.testbed.processes import bounded
from tests.testbed.release import KRAFT, ZOOKEEPER, mode_for
from tests.testbed.scenarios.five import five
from tests.testbed.scenarios.jbod import SETTINGS as SETTINGS_OF_JBOD
from tests.testbed.scenarios.jbod import jbod
from tests.testbed.scenarios.matrix import brief, matrix
from tests.testbed.scenarios.migration import migration
from tests.testbed.scenarios.rolling_upgrade import rolling_upgrade
from tests.testbed.scenarios.rotation import rotation
from tests.testbed.scenarios.run import Request, Run
from tests.testbed.scenarios.secure import secure
from tests.testbed.scenarios.share import SETTINGS as SETTINGS_OF_SHARE
from tests.testbed.scenarios.share import share
from tests.testbed.scenarios.tiered import settings as settings_of_tiered
from tests.testbed.scenarios.tiered import tiered
from tests.testbed.truth import write_lost

#: A run that is stuck ends after its time and this.
SPARE_S = 240


class ScenarioError(Exception):
    """A scenario that is not there, or not for these releases."""


@dataclass(frozen=True)
class Scenario:
    """What can be run."""

    play: Callable[[Run], None]  #: does it
    seconds: int | None  #: how long it takes; None where ``minutes`` says
    releases: int = 1  #: how many it passes through
    modes: tuple[str, ...] = (KRAFT, ZOOKEEPER)  #: in which it may begin
    brokers: int = 3  #: how many
    controllers: int = 0  #: KRaft controllers that are nodes of their own
    directories: int = 1  #: log directories of each broker
    secured: bool = False  #: with users and ACLs
    #: of all nodes, beside those that all scenarios have
    settings: Callable[[Cluster], Mapping[str, object]] = lambda cluster: {}
    since: tuple[int, ...] = (0, 10)  #: the first release that can do it
    jar: str = ""  #: an artifact that its brokers need beside their own, as `further_jar` takes it
    rotation: str = HOURLY  #: how often log files rotate


SCENARIOS = {
    "brief": Scenario(brief, 60),
    "matrix": Scenario(matrix, 100),
    "rolling-upgrade": Scenario(rolling_upgrade, 150, releases=2),
    "zk-to-kraft": Scenario(migration, 200, modes=(ZOOKEEPER,), controllers=1),
    "rotation": Scenario(rotation, None, rotation=MINUTELY),
    "five": Scenario(five, 140, modes=(KRAFT,), brokers=5, controllers=3, since=(3, 3)),
    "secure": Scenario(secure, 100, modes=(KRAFT,), secured=True, since=(3, 3)),
    "jbod": Scenario(
        jbod, 90, modes=(KRAFT,), brokers=4, directories=2, settings=lambda _: SETTINGS_OF_JBOD, since=(3, 7)
    ),
    "tiered": Scenario(
        tiered, 110, modes=(KRAFT,), settings=settings_of_tiered, since=(3, 6), jar="kafka-storage:test"
    ),
    "share": Scenario(share, 90, modes=(KRAFT,), settings=lambda _: SETTINGS_OF_SHARE, since=(4, 1)),
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
    if scenario.jar:
        further_jar(request.releases[0], scenario.jar, request.jars)
    seconds = request.minutes * 60 if scenario.seconds is None else scenario.seconds
    with bounded(round(seconds) + SPARE_S):
        run = Run(
            request,
            brokers=scenario.brokers,
            controllers=scenario.controllers,
            directories=scenario.directories,
            rotation=scenario.rotation,
            secured=scenario.secured,
            jar=scenario.jar,
        )
        try:
            for node in run.cluster.nodes.values():
                node.extra |= scenario.settings(run.cluster)
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
    if min(request.releases) < scenario.since:
        raise ScenarioError(f"{request.scenario} is for {'.'.join(map(str, scenario.since))} and later")
    return scenario

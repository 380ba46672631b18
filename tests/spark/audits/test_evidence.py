"""A violated cluster is never clean, whatever is removed from its logs, filled, or forged in values of clients."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.damage import (
    VALUES,
    Damage,
    begins_late,
    copy_of,
    cut,
    damaged,
    ends_early,
    filled,
    forged,
    of_its_own,
    without,
)
from tests.spark.audits.conftest import Verb
from tests.spark.audits.corpora import available
from tests.verbs import CORPORA

#: A cluster at T1 with a lost record, and its id.
CORPUS, CLUSTER_ID = "kip101", b"WCK8FkK8RbKFhwge5X0aNA"


def on(kind: str, damage: Damage, *brokers: int) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        for broker in sorted(folder.glob("broker-*")):
            if not brokers or int(broker.name.rpartition("-")[2]) in brokers:
                for log in (broker / "logs").glob(f"{kind}.log*"):
                    damaged(log, damage)

    return change


def without_kind(kind: str, *brokers: int) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        for broker_id in brokers:
            for log in (folder / f"broker-{broker_id}" / "logs").glob(f"{kind}.log*"):
                log.unlink()

    return change


FORGED = {f"forged {name}": on("server", forged(value)) for name, value in VALUES.items()}
FORGED["forged deletion, late, on two brokers"] = on("server", forged(VALUES["deletion"], 0.9), 1, 2)
FILLED = {f"filled with {byte.hex()}": on("server", filled(byte, 20_000), 1) for byte in (b" ", b"\n", b"\xff", b"\0")}
CUT = {
    "server cut": on("server", cut(29), 1),
    "all servers cut": on("server", cut(29)),
    "tail of the leader that died": on("server", ends_early(15), 2),
    "begins late": on("kafka-request", begins_late(20), 3),
}
DROPPED = {
    "no state-change log": without_kind("state-change", 2),
    "no server log": without_kind("server", 3),
    "no request log": without_kind("kafka-request", 1),
    "no TRACE for a while": on("server", without(rb"^\[[^\]]*\] TRACE ", 0.4, 0.6)),
    "no produces": on("kafka-request", without(rb"apiKey[:=](?:0|PRODUCE)\b|PRODUCE"), 1),
}


@pytest.mark.parametrize(
    "damages",
    [
        pytest.param(FORGED, id="forged"),
        pytest.param(FILLED, id="filled"),
        pytest.param(CUT, id="cut"),
        pytest.param(DROPPED, id="dropped"),
    ],
)
@pytest.mark.long
@pytest.mark.skipif(not available(), reason="the large corpora are not beside this checkout")
def test_a_violated_cluster_is_never_clean(
    verb: Verb, tmp_path: Path, damages: dict[str, Callable[[Path], None]]
) -> None:
    conf = tmp_path / "clusters.toml"
    lines = ["[ingest.clusters]"]
    for number, damage in enumerate(damages.values()):
        folder = of_its_own(copy_of(CORPORA / CORPUS, tmp_path / "logs" / str(number)), CLUSTER_ID, f"damage-{number}")
        damage(folder)
        lines.append(f'"{folder}" = "damage-{number}"')
    conf.write_text("\n".join(lines), encoding="utf-8")
    ended = verb(tmp_path, "audit", tmp_path / "logs", "--conf", conf)
    assert ended.code == 1, ended.err
    verdicts = {part["cluster_id"]: part["verdict"] for part in ended.report["clusters"]}
    of_damages = {name: verdicts[f"damage-{number}"] for number, name in enumerate(damages)}
    for name, verdict in of_damages.items():
        print(f"{name}: {verdict}")
    assert "clean" not in of_damages.values()


@pytest.mark.long
@pytest.mark.skipif(not available(), reason="the large corpora are not beside this checkout")
def test_a_value_moves_no_broker_to_another_cluster(verb: Verb, tmp_path: Path) -> None:
    """The lines in which the broker itself names its cluster are gone."""
    folder = copy_of(CORPORA / CORPUS, tmp_path / "logs")
    on("server", without(rb"Cluster ID"), 2)(folder)
    on("server", forged(f"Cluster ID = {'A' * 22}"), 2)(folder)
    ended = verb(tmp_path, "audit", folder)
    assert ended.code == 1, ended.err
    assert [(part["cluster_id"], part["verdict"]) for part in ended.report["clusters"]] == [
        (CLUSTER_ID.decode(), "violated")
    ]


@pytest.mark.long
@pytest.mark.skipif(not available(), reason="the large corpora are not beside this checkout")
def test_a_broker_that_whole_forged_records_move_leaves_no_cluster_clean(verb: Verb, tmp_path: Path) -> None:
    """Both clusters lack brokers that their logs name."""
    folder = copy_of(CORPORA / CORPUS, tmp_path / "logs")
    record = f"INFO Cluster ID = {'A' * 22} (kafka.server.KafkaServer)"
    value = VALUES["balanced"].replace("INFO Loading logs. (kafka.log.LogManager)", record)
    on("server", without(rb"Cluster ID"), 2)(folder)
    on("server", forged(value), 2)(folder)
    ended = verb(tmp_path, "audit", folder)
    assert ended.code == 1, ended.err
    verdicts = {part["cluster_id"]: part["verdict"] for part in ended.report["clusters"]}
    assert verdicts == {CLUSTER_ID.decode(): "violated", "A" * 22: "inconclusive"}

"""What is fetched and written for a release."""

from __future__ import annotations

import pytest

from tests.testbed.fetch import pom
from tests.testbed.log_settings import MINUTELY, log_settings
from tests.testbed.release import KRAFT, ZOOKEEPER, Release, mode_for
from tests.testbed.settings import FIRST_CONTROLLER, Layout, server_properties

pytestmark = pytest.mark.unit

THREE = {1: 20001, 2: 20002, 3: 20003}
QUORUM = {1: 20004, 2: 20005, 3: 20006}


def parsed(text: str) -> dict[str, str]:
    return dict(line.split("=", 1) for line in text.splitlines())


def test_releases_are_ordered_by_number_not_by_text():
    names = ["4.0.0", "0.10.2.2", "3.10.0", "3.9.1", "0.11.0.3"]
    in_order = ["0.10.2.2", "0.11.0.3", "3.9.1", "3.10.0", "4.0.0"]
    assert [str(release) for release in sorted(map(Release.parse, names))] == in_order


@pytest.mark.parametrize("text", ["3.6", "3.6.x", "", "0.9.0.1", "0.8.2.2"])
def test_a_name_that_is_no_release_that_can_be_run_is_refused(text: str):
    with pytest.raises(ValueError, match=r"release|older"):
        Release.parse(text)


@pytest.mark.parametrize(
    ("version", "scala", "modes"),
    [
        ("0.10.0.1", "2.11", (ZOOKEEPER,)),
        ("2.0.1", "2.11", (ZOOKEEPER,)),
        ("2.1.1", "2.12", (ZOOKEEPER,)),
        ("2.6.3", "2.13", (ZOOKEEPER,)),
        ("3.2.3", "2.13", (ZOOKEEPER,)),
        ("3.9.1", "2.13", (KRAFT, ZOOKEEPER)),
        ("4.0.0", "2.13", (KRAFT,)),
    ],
)
def test_a_release_runs_on_its_scala_and_in_its_modes(version: str, scala: str, modes: tuple[str, ...]):
    release = Release.parse(version)
    assert (release.scala, release.modes) == (scala, modes)
    assert f"org.apache.kafka:kafka_{scala}:{version}" in release.artifacts


@pytest.mark.parametrize(("version", "present"), [("2.8.2", "reload4j"), ("4.1.2", "log4j-core")])
def test_a_broker_has_exactly_one_log4j(version: str, present: str):
    release = Release.parse(version)
    names = [name.split(":")[1] for name in release.artifacts]
    assert [name for name in names if name in ("reload4j", "log4j-core")] == [present]
    assert "log4j:log4j" in release.excluded


def test_tools_that_are_not_to_be_had_are_those_of_an_older_release():
    assert str(Release.parse("4.4.0").tools) == "4.3.1"
    assert str(Release.parse("4.3.1").tools) == "4.3.1"
    assert not any("kafka-tools:" in name for name in Release.parse("4.4.0").artifacts)


@pytest.mark.parametrize(("version", "protocol"), [("0.10.2.2", "0.10.2"), ("1.0.2", "1.0"), ("3.9.1", "3.9")])
def test_a_protocol_is_named_as_kafka_does(version: str, protocol: str):
    assert Release.parse(version).protocol == protocol


def test_the_mode_is_one_that_all_releases_have():
    old, new = Release.parse("3.2.3"), Release.parse("3.9.1")
    assert mode_for([new], (KRAFT, ZOOKEEPER)) == KRAFT
    assert mode_for([old, new], (KRAFT, ZOOKEEPER)) == ZOOKEEPER
    assert mode_for([new], (KRAFT, ZOOKEEPER), ZOOKEEPER) == ZOOKEEPER
    with pytest.raises(ValueError, match=r"3.2.3 and 4.0.0"):
        mode_for([old, Release.parse("4.0.0")], (KRAFT, ZOOKEEPER))
    with pytest.raises(ValueError, match=r"4\.0\.0"):
        mode_for([Release.parse("4.0.0")], (ZOOKEEPER,))


def test_a_pom_names_each_artifact_with_what_must_not_come_along():
    text = pom("x", ("a:b:1", "c:d:2"), ("e:f",))
    assert text.count("<dependency>") == 2
    assert text.count("<exclusion><groupId>e</groupId><artifactId>f</artifactId></exclusion>") == 2
    assert "<groupId>c</groupId><artifactId>d</artifactId><version>2</version>" in text


@pytest.mark.parametrize(("version", "level"), [("0.10.2.2", "TRACE"), ("2.6.3", "DEBUG")])
def test_request_logs_tell_offsets_in_log4j_1(version: str, level: str):
    lines = log_settings(Release.parse(version), "T1").splitlines()
    assert f"log4j.logger.kafka.request.logger={level}, request" in lines


def test_request_logs_tell_offsets_in_log4j_2():
    settings = parsed(log_settings(Release.parse("4.1.2"), "T1"))
    (number,) = (key for key, value in settings.items() if value == "kafka.request.logger")
    assert settings[number.replace(".name", ".level")] == "DEBUG"


@pytest.mark.parametrize("version", ["2.6.3", "4.1.2"])
def test_the_brokers_own_account_is_logged_only_where_it_is_asked_for(version: str):
    assert "DelayedProduce" not in log_settings(Release.parse(version), "T1")
    assert "DelayedProduce" in log_settings(Release.parse(version), "T3")


@pytest.mark.parametrize("version", ["2.6.3", "4.1.2"])
def test_files_rotate_as_often_as_asked_for(version: str):
    assert log_settings(Release.parse(version), "T1", MINUTELY).count("yyyy-MM-dd-HH-mm") == 5
    assert "yyyy-MM-dd-HH-mm" not in log_settings(Release.parse(version), "T1")


def test_a_zookeeper_broker_listens_on_loopback_only():
    layout = Layout(THREE, zookeeper_port=20009)
    values = parsed(server_properties(Release.parse("2.6.3"), ZOOKEEPER, layout, 2, "data"))
    assert values["listeners"] == "PLAINTEXT://127.0.0.1:20002"
    assert values["zookeeper.connect"] == "127.0.0.1:20009"
    assert "process.roles" not in values


def test_kraft_nodes_have_the_role_that_their_ports_say():
    release = Release.parse("3.9.1")
    combined = parsed(server_properties(release, KRAFT, Layout(THREE, QUORUM), 1, "data"))
    assert combined["process.roles"] == "broker,controller"
    assert combined["controller.quorum.voters"] == "1@127.0.0.1:20004,2@127.0.0.1:20005,3@127.0.0.1:20006"
    apart = Layout(THREE, {FIRST_CONTROLLER: 20007})
    broker = parsed(server_properties(release, KRAFT, apart, 1, "data"))
    assert (broker["process.roles"], broker["listeners"]) == ("broker", "PLAINTEXT://127.0.0.1:20001")
    controller = parsed(server_properties(release, KRAFT, apart, FIRST_CONTROLLER, "data"))
    assert (controller["process.roles"], controller["listeners"]) == ("controller", "CONTROLLER://127.0.0.1:20007")
    assert "advertised.listeners" not in controller


def test_settings_of_one_node_win():
    layout = Layout(THREE, zookeeper_port=20009)
    extra = {"min.insync.replicas": 1, "inter.broker.protocol.version": "2.6"}
    values = parsed(server_properties(Release.parse("2.6.3"), ZOOKEEPER, layout, 1, "data", extra))
    assert (values["min.insync.replicas"], values["inter.broker.protocol.version"]) == ("1", "2.6")


def test_a_release_without_transactions_is_not_told_of_them():
    layout = Layout(THREE, zookeeper_port=20009)
    old = parsed(server_properties(Release.parse("0.10.2.2"), ZOOKEEPER, layout, 1, "data"))
    assert not any(key.startswith("transaction") for key in old)
    assert old["delete.topic.enable"] == "true"

"""The configuration: defaults, layers, and errors that name file, key and allowed values."""

import os
from pathlib import Path

import pytest

from highwater.jobs import cli
from highwater.pipelines.base.config import find_other_writer, load_config
from highwater.pipelines.base.errors import ConfigError


def _file(folder: Path, text: str) -> Path:
    path = folder / "mine.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_defaults_are_those_of_the_contract() -> None:
    config = load_config()
    assert config.replay.tolerance_ms == 5
    assert config.replay.late_ms == 100
    assert config.replay.evidence_tier_max == "T3"
    assert config.latency.slow_ms == 20
    assert config.ingest.timezone == "UTC"
    assert config.ingest.record_bytes_max == 1 << 20


def test_the_command_line_wins_over_the_file_and_the_file_over_the_defaults(tmp_path: Path) -> None:
    path = _file(tmp_path, '[session]\nmaster = "local[3]"\n[replay]\nlate_ms = 200\n')
    config = load_config(path, {"session.master": "local[5]"})
    assert config.session.master == "local[5]"
    assert config.replay.late_ms == 200
    assert config.replay.tolerance_ms == 5
    assert load_config(path, {"session.master": None}).session.master == "local[3]"


def test_spark_settings_may_be_quoted_or_not(tmp_path: Path) -> None:
    path = _file(tmp_path, '[session.spark]\nspark.sql.shuffle.partitions = 4\n"spark.sql.adaptive.enabled" = false\n')
    assert load_config(path).session.spark == {
        "spark.sql.shuffle.partitions": "4",
        "spark.sql.adaptive.enabled": "false",
    }


@pytest.mark.parametrize(
    ("text", "key", "words"),
    [
        ("[replay]\nevidence_tier_max = 'T9'", "replay.evidence_tier_max", ["'T9'", "T0, T1, T2, T3"]),
        (
            "[repaly]\nlate_ms = 1",
            "repaly",
            ["unknown key", "session, ingest, quality, replay"],
        ),
        ("[replay]\ntolerance = 1", "replay.tolerance", ["unknown key", "tolerance_ms"]),
        ("[replay]\ntolerance_ms = '5'", "replay.tolerance_ms", ["integer", "'5'"]),
        ("[replay]\ntolerance_ms = -1", "replay.tolerance_ms", ["greater than or equal to 0", "-1"]),
        ("[ingest]\ntimezone = 'Mars/Olympus'", "ingest.timezone", ["Mars/Olympus", "IANA"]),
        ("[ingest]\ntimezone = '../../etc'", "ingest.timezone", ["IANA"]),
        ("[ingest.clusters]\n'/l' = { timezone = 'Mars' }", "ingest.clusters./l.timezone", ["'Mars'", "IANA"]),
        ("[ingest.clusters]\n'/l' = { name = 'east' }", "ingest.clusters./l.name", ["unknown key"]),
        ("[ingest.clusters]\n'/l' = 'a/b'", "ingest.clusters./l.cluster", ["'a/b'", "letters, digits"]),
        ("[ingest.clusters]\n'/l' = '..'", "ingest.clusters./l.cluster", ["'..'", "letters, digits"]),
        ("[ingest]\ncluster = \"x' OR '\"", "ingest.cluster", ["is not a name", "letters, digits"]),
        ("[ingest.clusters]\n'/l' = 5", "ingest.clusters./l", ["5"]),
        ("[ingest]\nrecord_bytes_max = 10", "ingest.record_bytes_max", ["4096"]),
        (
            "[session.spark]\nspark.sql.session.timeZone = 'Asia/Tokyo'",
            "session.spark",
            ["always UTC", "ingest.timezone"],
        ),
        ("[session]\ndriver_memory = '2 GB'", "session.driver_memory", ["2 GB"]),
        ("replay = 3", "replay", ["dictionary"]),
        ("x = = 1", "", ["TOML", "line 1"]),
    ],
)
def test_errors_name_file_key_and_what_is_allowed(tmp_path: Path, text: str, key: str, words: list[str]) -> None:
    path = _file(tmp_path, text)
    with pytest.raises(ConfigError) as caught:
        load_config(path)
    message = str(caught.value)
    assert caught.value.key == key
    assert message.startswith(f"{path}: ")
    assert "\n" not in message
    for word in words:
        assert word in message


def test_an_error_names_the_layer_that_set_the_key(tmp_path: Path) -> None:
    path = _file(tmp_path, "[replay]\nlate_ms = 200\n")
    with pytest.raises(ConfigError, match=r"^command line: session\.master"):
        load_config(path, {"session.master": ""})


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such file"):
        load_config(tmp_path / "absent.toml")
    with pytest.raises(ConfigError, match="cannot be read"):
        load_config(tmp_path)


def test_clusters_are_names_by_folder_with_or_without_a_zone(tmp_path: Path) -> None:
    text = "[ingest.clusters]\n'/e' = 'east'\n'/w' = { cluster = 'west', timezone = 'Asia/Tokyo' }\n"
    clusters = load_config(_file(tmp_path, text)).ingest.clusters
    said = {folder: (one.cluster, one.timezone) for folder, one in clusters.items()}
    assert said == {"/e": ("east", None), "/w": ("west", "Asia/Tokyo")}


def test_naming_one_more_cluster_changes_no_result(tmp_path: Path) -> None:
    plain, named = (
        load_config(),
        load_config(_file(tmp_path, "[ingest.clusters]\n'/e' = 'east'\n"), {"ingest.cluster": "c"}),
    )
    assert (named.config_hash, named.replay_hash) == (plain.config_hash, plain.replay_hash)


def test_the_hash_follows_what_can_change_a_result() -> None:
    plain = load_config().config_hash
    assert load_config(None, {"session.master": "local[7]"}).config_hash == plain
    assert load_config(None, {"replay.late_ms": 101}).config_hash != plain


@pytest.mark.parametrize(
    ("file_mode", "folder_mode", "who"),
    [
        (0o600, 0o700, None),
        (0o644, 0o755, None),
        (0o666, 0o755, "everyone: it is writable by all"),
        (0o664, 0o755, "its group, which may write it"),
        (0o644, 0o777, "everyone: its folder is writable by all"),
        (0o644, 0o1777, None),
        (0o644, 0o775, "its group, which may write its folder"),
    ],
)
def test_who_may_change_a_configuration_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], file_mode: int, folder_mode: int, who: str | None
) -> None:
    path = _file(tmp_path, "[replay]\nlate_ms = 200\n")
    shared = 12345 if os.getuid() == 0 else os.getgid()
    for place, mode in ((path, file_mode), (tmp_path, folder_mode)):
        os.chown(place, -1, shared)
        place.chmod(mode)
    if os.getuid() != 0 and who and "group" in who:
        pytest.skip("only root gives a file to another group than its own")
    assert find_other_writer(path) == who
    cli.run(["maintain", "--conf", str(path), "--lake", str(tmp_path / "lake")])
    assert ("is code, and can be changed by" in capsys.readouterr().err) == (who is not None)


def test_a_configuration_of_another_user_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = _file(tmp_path, "")
    owner = path.stat().st_uid
    monkeypatch.setattr(os, "getuid", lambda: owner + 1)
    assert find_other_writer(path) == (None if owner == 0 else "another user, who owns it")


def test_a_lake_brings_no_configuration(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "lake").mkdir()
    inside = _file(tmp_path / "lake", "[session.spark]\n'spark.driver.extraClassPath' = '.'\n")
    (tmp_path / "link.toml").symlink_to(inside)
    for conf in (inside, tmp_path / "link.toml"):
        for arguments in (["--conf", str(conf), "--lake"], ["--lake"]):
            end = [str(tmp_path / "lake"), *([] if "--conf" in arguments else ["--conf", str(conf)])]
            assert cli.run(["maintain", *arguments, *end]) == 2
            assert "is in the lake" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a = " + "[" * 50_000, "is not TOML"),
        ("a = " + "{b=" * 20_000, "is not TOML"),
        ("[" * 50_000, "is not TOML"),
        ("[" + "a." * 2000 + "a]", "arrays or tables are nested too deeply"),
        ("[ingest]\n" + "".join(f"k{number} = 1\n" for number in range(10_000)), "has more than 65536 characters"),
        ("[replay]\nsettle_ms = " + "9" * 10_000, "has a number that is too long"),
    ],
)
def test_a_file_that_is_too_deep_or_too_large_is_named(text: str, problem: str, tmp_path: Path) -> None:
    file = tmp_path / "deep.toml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=rf"deep\.toml: .*{problem}"):
        load_config(file)


def test_a_file_without_an_end_is_not_read_to_it() -> None:
    with pytest.raises(ConfigError, match="has more than 65536 characters"):
        load_config(Path("/dev/zero"))

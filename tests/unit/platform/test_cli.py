"""The command's contract: verbs, exit codes, one line per error, results and progress on their own streams."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from highwater.jobs import cli, steps
from highwater.jobs.exit_codes import ExitCode
from highwater.pipelines.base.errors import ConfigError, EnvironmentProblem, HighwaterError, InputError, LakeError

ROOT = Path(__file__).resolve().parents[3]


def _command(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "highwater.jobs.cli", *arguments],
        cwd=ROOT,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_help_names_every_exit_code() -> None:
    result = CliRunner().invoke(cli.highwater, ["--help"])
    assert result.exit_code == 0
    for code in (0, 1, 2, 3, 70):
        assert f"{code:>4}  " in result.output


def test_verbs_and_options_are_those_of_the_contract() -> None:
    verbs = cli.highwater.commands
    assert {"audit", "ingest", "parse", "replay", "report", "tables", "doctor"} <= verbs.keys()
    options = {option for parameter in verbs["audit"].params for option in parameter.opts}
    assert {"logs", "--lake", "--out", "--from", "--until", "--master", "--conf"} <= options


def test_version() -> None:
    result = CliRunner().invoke(cli.highwater, ["--version"])
    assert result.exit_code == 0
    assert result.output.startswith("highwater ")


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ConfigError("a.toml", "x.y", "is odd"), 2),
        (InputError("a.log", "is no log", "give a log"), 2),
        (EnvironmentProblem("no Java", "install it"), 2),
        (LakeError("rows do not fit"), 70),
        (HighwaterError("odd"), 70),
        (RuntimeError("first line\nsecond line"), 70),
        (MemoryError(), 70),
        (KeyboardInterrupt(), 130),
    ],
)
def test_every_exception_has_its_exit_code_and_one_line(
    error: BaseException,
    code: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fail(*_: object) -> ExitCode:
        raise error

    monkeypatch.setattr(steps, "audit", fail)
    monkeypatch.delenv(cli.DEBUG_VARIABLE, raising=False)
    assert cli.run(["audit", str(tmp_path)]) == code
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("highwater: ")
    assert said.err.count("\n") == 1


def test_the_traceback_is_there_for_who_asks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object) -> ExitCode:
        raise RuntimeError("boom")

    monkeypatch.setattr(steps, "audit", fail)
    monkeypatch.setenv(cli.DEBUG_VARIABLE, "1")
    assert cli.run(["audit", str(tmp_path)]) == ExitCode.INTERNAL
    assert "Traceback" in capsys.readouterr().err


@pytest.mark.parametrize("verdict", [ExitCode.CLEAN, ExitCode.VIOLATED, ExitCode.INCONCLUSIVE])
def test_the_verdict_is_the_exit_code(verdict: ExitCode, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "audit", lambda *_: verdict)
    assert cli.run(["audit", str(tmp_path)]) == verdict


def test_a_step_is_given_what_the_command_line_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    monkeypatch.setattr(steps, "audit", lambda run, logs: seen.append((run, logs)) or ExitCode.CLEAN)
    arguments = ["--lake", "l", "--out", "o", "--master", "local[3]", "--from", "2026-11-20T15:00+01:00"]
    assert cli.run(["audit", str(tmp_path), *arguments, "--until", "2026-11-20T14:05"]) == 0
    ((run, logs),) = seen
    assert (run.lake, run.out, run.config.session.master) == (Path("l"), Path("o"), "local[3]")
    assert run.time_from.isoformat() == "2026-11-20T14:00:00+00:00"
    assert run.time_until.isoformat() == "2026-11-20T14:05:00+00:00"
    assert logs == (tmp_path,)


@pytest.mark.parametrize(
    "arguments",
    [
        ["audit"],
        ["nonsense"],
        ["audit", "--nonsense", "."],
        ["audit", ".", "--from", "yesterday"],
        ["audit", ".", "--from", "2026-11-20", "--until", "2026-11-20"],
        ["audit", "absent-folder"],
        ["audit", ".", "--conf", "absent.toml"],
        ["tables", "--lake", "absent-lake"],
    ],
)
def test_bad_usage_ends_with_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(arguments) == ExitCode.USAGE
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err


@pytest.mark.parametrize("arguments", [["ingest", "."], ["parse"], ["replay"]])
@pytest.mark.parametrize("option", ["--from", "--until"])
def test_a_span_is_refused_where_it_would_be_ignored(
    arguments: list[str], option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.run([*arguments, option, "2026-11-20"]) == ExitCode.USAGE
    (said,) = capsys.readouterr().err.splitlines()
    assert "--from and --until are for audit, report and gate" in said


@pytest.mark.parametrize("verb", ["audit", "report", "gate"])
def test_verbs_that_may_be_given_a_span_take_it(verb: str) -> None:
    assert {"time_from", "time_until"} <= {parameter.name for parameter in cli.highwater.commands[verb].params}


@pytest.mark.parametrize(
    "arguments",
    [
        ["audit", ".", "--lake", "s3a:///lake"],
        ["audit", "webhdfs://namenode:9870/logs"],
        ["audit", ".", "--out", "oss://bucket/report"],
        ["audit", "file://elsewhere/logs"],
        ["ingest", "wasbs://logs@account.blob.core.windows.net/kafka"],
        ["tables", "--lake", "dbfs:/lake"],
        ["sql", "--lake", "S3://bucket/../lake"],
        ["maintain", "--lake", "hdfs:///lake/../other"],
    ],
)
def test_a_store_that_is_not_supported_is_refused_in_one_line(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.run(arguments) == ExitCode.USAGE
    (said,) = capsys.readouterr().err.splitlines()
    assert said.startswith(f"highwater: {next(one for one in arguments if ':/' in one)}: ")
    assert list(tmp_path.iterdir()) == []


def test_a_file_uri_is_the_local_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    monkeypatch.setattr(steps, "audit", lambda run, logs: seen.append((run, logs)) or ExitCode.CLEAN)
    logs = tmp_path / "broker logs"
    logs.mkdir()
    arguments = ["audit", logs.as_uri(), "--lake", f"file://localhost{tmp_path}/lake", "--out", f"file:{tmp_path}/out"]
    assert cli.run(arguments) == 0
    ((run, given),) = seen
    assert (given, run.lake, run.out) == ((logs,), tmp_path / "lake", tmp_path / "out")


def test_the_process_answers_with_the_code() -> None:
    assert _command("--version").returncode == 0
    absent = _command("audit", "absent-folder")
    assert absent.returncode == 2
    assert absent.stderr.startswith("highwater: absent-folder: ")
    assert absent.stderr.count("\n") == 1
    assert absent.stdout == ""


def test_a_key_without_redaction_is_a_usage_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["report", "--lake", str(tmp_path), "--redact-key-file", str(tmp_path / "key")]) == ExitCode.USAGE
    assert "--redact-key-file is for --redact" in capsys.readouterr().err


def test_a_key_that_is_not_there_is_an_input_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["bundle", "--lake", str(tmp_path), "--redact", "--redact-key-file", str(tmp_path / "key")]
    assert cli.run(arguments) == ExitCode.USAGE
    assert "cannot be read (No such file or directory)" in capsys.readouterr().err

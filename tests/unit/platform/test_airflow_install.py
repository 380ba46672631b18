"""The DAGs are put where Airflow reads them."""

from pathlib import Path

import pytest

from highwater.jobs import cli
from highwater.jobs.exit_codes import ExitCode

ROOT = Path(__file__).resolve().parents[3]


def test_every_module_of_the_dags_is_put_into_the_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "highwater_audit.py").write_text("of an earlier version", encoding="utf-8")
    (tmp_path / "other.py").write_text("somebody else's", encoding="utf-8")
    assert cli.run(["airflow", "install", str(tmp_path)]) == ExitCode.CLEAN
    ours = {path.name: path.read_bytes() for path in (ROOT / "airflow_dags").glob("*.py")}
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == ours | {"other.py": b"somebody else's"}
    assert "airflow pools set highwater_lake 1" in capsys.readouterr().err


def test_a_folder_that_is_none_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["airflow", "install", str(tmp_path / "absent")]) == ExitCode.USAGE
    assert "is not a folder; name Airflow's folder of DAGs" in capsys.readouterr().err

"""The page is opened where there is a browser; elsewhere it is said where it is."""

import webbrowser
from pathlib import Path

import pytest

from highwater.jobs import cli, steps
from highwater.jobs.exit_codes import ExitCode
from highwater.jobs.page import open_page
from tests.console import CaptureConsole


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Addresses that a browser was given."""
    addresses: list[str] = []
    monkeypatch.setattr(webbrowser, "open", lambda address: addresses.append(address) or True)
    monkeypatch.setenv("DISPLAY", ":0")
    return addresses


def test_the_page_is_opened_once_it_is_written(
    opened: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(steps, "report", lambda run: ExitCode.VIOLATED)
    assert cli.run(["report", "--out", str(tmp_path), "--open"]) == ExitCode.VIOLATED
    assert opened == [f"file://{tmp_path}/report.html"]
    assert cli.run(["report", "--out", str(tmp_path)]) == ExitCode.VIOLATED
    assert len(opened) == 1


def test_without_a_display_it_is_said_where_the_page_is(
    opened: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DISPLAY")
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    monkeypatch.setattr("sys.platform", "linux")
    console = CaptureConsole()
    open_page(console, tmp_path)
    assert opened == []
    assert str(tmp_path / "report.html") in console.texts("note")[0]


def test_a_page_in_a_store_is_refused_before_anything_is_done(
    opened: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.run(["report", "--out", "s3://bucket/report", "--open"]) == ExitCode.USAGE
    assert "no browser reads" in capsys.readouterr().err

"""Writes the report's files, each whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import orjson

from pipelines.errors import InputError
from pipelines.report.model import Report
from pipelines.report.page.render import render_html
from pipelines.report.render_markdown import render_markdown
from pipelines.report.render_sarif import render_sarif

JSON_NAME = "report.json"
MARKDOWN_NAME = "report.md"
HTML_NAME = "report.html"
SARIF_NAME = "report.sarif"


def render_json(report: Report) -> bytes:
    """The contract's names, keys always in the same order, so that equal reports are equal files: UTF-8, indented."""
    return orjson.dumps(report.model_dump(mode="json"), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def render_files(report: Report) -> dict[str, bytes]:
    """The report's files by name, all of one model."""
    return {
        JSON_NAME: render_json(report),
        MARKDOWN_NAME: render_markdown(report).encode(),
        HTML_NAME: render_html(report).encode(),
        SARIF_NAME: render_sarif(report),
    }


def write_report(report: Report, out_dir: Path) -> tuple[Path, ...]:
    """Write the report's files into a folder, which is made if it is not there.

    All is rendered before anything is written; a file that was there stays until its successor is complete.

    Returns:
        The files written.

    Raises:
        InputError: the folder cannot be made or written.
    """
    contents = render_files(report)
    with _cannot_hold(out_dir):
        out_dir.mkdir(parents=True, exist_ok=True)
        return tuple(_replace(out_dir / name, content) for name, content in contents.items())


def make_report_folder(out_dir: Path) -> None:
    """Make the folder and try to write there: minutes before there is a report to write.

    Raises:
        InputError: it cannot be made or written.
    """
    with _cannot_hold(out_dir):
        out_dir.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=out_dir):
            pass


@contextmanager
def _cannot_hold(out_dir: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        problem = f"cannot hold the report ({error.strerror or error})"
        raise InputError(out_dir, problem, "choose another folder with --out") from None


def _replace(path: Path, content: bytes) -> Path:
    """Write beside the file, then rename over it."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        # mkstemp makes a file that only its owner may read.
        os.chmod(name, 0o666 & ~_umask())
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    return path


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current

"""Writes the report's files, each whole or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import orjson

from highwater.pipelines.base.errors import InputError
from highwater.pipelines.base.limits import find_reached
from highwater.pipelines.report.model import Report
from highwater.pipelines.report.page.render import render_html
from highwater.pipelines.report.render_markdown import render_markdown
from highwater.pipelines.report.render_sarif import render_sarif
from highwater.pipelines.storage.place import Place, resolved
from highwater.pipelines.storage.store import store_of
from highwater.pipelines.storage.unmade import undo_folders

JSON_NAME = "report.json"
MARKDOWN_NAME = "report.md"
HTML_NAME = "report.html"
SARIF_NAME = "report.sarif"


def render_json(report: Report) -> bytes:
    """Return report.json with the field names of the contract, in fixed order, indented, in UTF-8."""
    return orjson.dumps(report.model_dump(mode="json"), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def render_files(report: Report) -> dict[str, bytes]:
    """Return the files of the report by name, all rendered from one model."""
    return {
        JSON_NAME: render_json(report),
        MARKDOWN_NAME: render_markdown(report).encode(),
        HTML_NAME: render_html(report).encode(),
        SARIF_NAME: render_sarif(report),
    }


def write_report(report: Report, out_dir: Place) -> tuple[Place, ...]:
    """Write the files of the report into a folder. The folder is created if it is missing.

    All files are rendered before anything is written. On a local disk, all are written before any file is replaced, so
    that the folder never mixes the files of two reports.

    Returns:
        The files written.

    Raises:
        InputError: the folder cannot be created or written.
    """
    contents = render_files(report)
    with convert_write_errors(out_dir, "report"):
        store, folder = store_of(out_dir), resolved(out_dir)
        store.make_folder(folder)
        # Where a store puts one file after the other, the one that programs read says that the others are there.
        names = sorted(contents, key=lambda name: name == JSON_NAME)
        store.replace_all(folder, {name: contents[name] for name in names})
        return tuple(out_dir / name for name in contents)


@contextmanager
def prepare_folder(out_dir: Place, what: str) -> Iterator[None]:
    """Create a folder and test that it can be written, before a long run. New folders that stay empty are removed.

    Args:
        out_dir: the folder.
        what: name of the result, for the error.

    Raises:
        InputError: the folder cannot be created or written.
    """
    with undo_folders(out_dir):
        with convert_write_errors(out_dir, what):
            store_of(out_dir).try_writing(out_dir)
        yield


@contextmanager
def convert_write_errors(out: Place, what: str) -> Iterator[None]:
    """Convert errors of writing files within the block to an error that names the place.

    Raises:
        InputError: the block could not write.
    """
    try:
        yield
    except OSError as error:
        limited = find_reached(str(error))
        problem = f"cannot hold the {what} ({limited[0] if limited else error.strerror or error})"
        raise InputError(out, problem, limited[1] if limited else "choose another place with --out") from None

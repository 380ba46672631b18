"""``highwater quality``: what was read, checked; what is in quarantine, let out."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

from jobs.exit_codes import ExitCode
from jobs.steps import Run, check_quality, written
from pipelines.console import Console
from pipelines.errors import InputError
from pipelines.quality.document import suites_markdown
from pipelines.quality.quarantine import quarantined, release
from pipelines.quality.stage import write_docs
from schemas.catalog import TABLES


def quality(run: Run, docs: Path | None, released: Sequence[str]) -> ExitCode:
    """Release files, or check what is new; then write Data Docs if a folder is given.

    Raises:
        InputError: there is no lake, or a file to release is not in quarantine.
        QualityError: a critical expectation failed.
    """
    if not any(run.lake.glob("*/*/_delta_log")):
        raise InputError(run.lake, "is no lake", "ingest logs first, or name the lake with --lake")
    with written(run, "quality") as lake:
        lake.create(TABLES)
        if released:
            paths = release(lake, released, f"{datetime.now(UTC):%Y%m%dT%H%M%S.%f}-{uuid4().hex[:8]}")
            for path in paths:
                run.console.result(f"released, to be read again by the next audit: {path}")
        else:
            check_quality(run, lake)
        if docs is not None:
            with run.console.stage("data docs"):
                page = write_docs(lake, run.config.quality, docs)
            run.console.note(f"wrote {page}")
        rows = [tuple(file) for file in quarantined(lake)]
    if rows:
        run.console.table(("file_id", "path", "problem"), rows)
    return ExitCode.CLEAN


def markdown(console: Console) -> ExitCode:
    """Print docs/quality.md."""
    console.result(suites_markdown().rstrip("\n"))
    return ExitCode.CLEAN

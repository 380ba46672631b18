"""``highwater quality``: check what was read, and release files from quarantine."""

from __future__ import annotations

from collections.abc import Sequence

from highwater.jobs.exit_codes import ExitCode
from highwater.jobs.steps import Run, check_quality, generate_id, open_lake, stage
from highwater.pipelines.base.errors import InputError
from highwater.pipelines.bronze.quarantine import quarantined, release
from highwater.pipelines.quality.stage import write_docs
from highwater.pipelines.storage.place import Place, Uri
from highwater.schemas.catalog import TABLES


def quality(run: Run, docs: Place | None, released: Sequence[str]) -> ExitCode:
    """Release files, or check new files. Then write Data Docs if a folder is given.

    Args:
        docs: local folder for Data Docs. None: write none.
        released: files to release. Empty: check new files.

    Raises:
        InputError: the lake does not exist, a file to release is not in quarantine, or `docs` is in a store.
        QualityError: no log is left to audit.
    """
    if isinstance(docs, Uri):
        raise InputError(docs, "Data Docs are written to this machine only", "give --docs a local folder, and copy it")
    with open_lake(run, "quality", writes=True) as lake:
        lake.create(TABLES)
        if released:
            for path in release(lake, released, generate_id()):
                run.console.result(f"released, to be read again by the next audit: {path}")
        else:
            check_quality(run, lake)
        if docs is not None:
            with stage(run, lake, "data docs"):
                page = write_docs(lake, run.config.quality, docs)
            run.console.note(f"wrote {page}")
        rows = [tuple(file) for file in quarantined(lake)]
    if rows:
        run.console.table(("file_id", "path", "problem"), rows)
    return ExitCode.CLEAN

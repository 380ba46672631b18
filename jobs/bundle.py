"""``highwater bundle``: the last audit in one archive, to be handed on."""

from __future__ import annotations

from functools import partial

from highwater.jobs.exit_codes import ExitCode
from highwater.jobs.steps import Run, open_lake, run_id_of, whole_report
from highwater.pipelines.base.errors import InputError
from highwater.pipelines.redact.known_names import build_pseudonyms
from highwater.pipelines.redact.text import Redactor
from highwater.pipelines.redact.values import redact_report, redact_table
from highwater.pipelines.report.bundle import write_bundle
from highwater.pipelines.storage.store import store_of
from highwater.schemas.audit import RULE_RESULTS


def bundle(run: Run) -> ExitCode:
    """Write the last audit as an archive to ``run.out``.

    Raises:
        InputError: the lake holds no audit, or the archive cannot be written.
    """
    store = store_of(run.out)
    if store.is_folder(run.out):
        raise InputError(run.out, "is a folder", "name the archive with --out, for example highwater-bundle.zip")
    with open_lake(run, "bundle") as lake:
        if lake.stamp(RULE_RESULTS) is None:
            raise InputError(run.lake, "holds no audit", "ingest, parse and replay logs into it first")
        with run.console.stage("bundle"):
            report, redact = whole_report(run, lake, run_id_of(run, lake), (), None), None
            if run.redact_key is not None:
                redactor = Redactor(build_pseudonyms(lake, run.redact_key))
                report, redact = redact_report(report, redactor), partial(redact_table, redactor=redactor)
            window = run.time_from, run.time_until
            write_bundle(report, lake, run.out, *window, redact, run.cluster_id(lake))
    run.console.result(f"{run.out}: {store.size_bytes(run.out):,} bytes{', names replaced' if redact else ''}")
    return ExitCode.CLEAN

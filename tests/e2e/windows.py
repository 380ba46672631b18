"""Reports of one lake for several windows, as JSON: ``python -m tests.e2e.windows LAKE '[["FROM", "UNTIL"], ...]'``."""

from __future__ import annotations

import sys
from datetime import datetime
from pathlib import Path

import orjson

from pipelines.config import load_config
from pipelines.lake import Lake
from pipelines.report.collect import collect_report
from pipelines.report.model import RunInfo
from pipelines.session import build_session


def main(lake_dir: Path, windows: list[tuple[str | None, str | None]]) -> None:
    config = load_config()
    spark = build_session(config, "windows")
    lake, info = Lake(spark, lake_dir), RunInfo("windows", "", "", "")
    reports = []
    for window in windows:
        since, until = (datetime.fromisoformat(bound) if bound else None for bound in window)
        report = collect_report(spark, lake, config, run=info, since=since, until=until)
        reports.append(report.model_dump(mode="json"))
    sys.stdout.write(orjson.dumps(reports).decode())
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), orjson.loads(sys.argv[2]))

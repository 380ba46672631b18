"""A job that spark-submit starts, with a session of this program."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from highwater.pipelines.base.jars import find_delta_jars
from tests.verbs import ROOT


def test_spark_submit_has_the_last_word(tmp_path: Path) -> None:
    job = tmp_path / "job.py"
    job.write_text(
        "import json\n"
        "from highwater.pipelines.base.config import load_config\n"
        "from highwater.pipelines.spark.session import build_session\n"
        "spark = build_session(load_config(), 'submitted')\n"
        "names = ['spark.master', 'spark.sql.shuffle.partitions', 'spark.ui.enabled', 'spark.sql.extensions']\n"
        "print(json.dumps({name: spark.conf.get(name) for name in names}))\n",
        encoding="utf-8",
    )
    submit = Path(sys.executable).parent / "spark-submit"
    class_path = os.pathsep.join(map(str, find_delta_jars()))
    settings = ["--conf", "spark.sql.shuffle.partitions=3", "--driver-class-path", class_path]
    done = subprocess.run(
        [str(submit), "--master", "local[1]", *settings, str(job)],
        env=os.environ | {"PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == {
        "spark.master": "local[1]",
        "spark.sql.shuffle.partitions": "3",
        "spark.ui.enabled": "false",
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    }

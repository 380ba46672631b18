"""Blocks of README.md and docs/*.md run on the audited slice."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from highwater.pipelines.lake.views import register, run_query
from tests.blocks import COMMANDS, PYTHON, SQL, Block, blocks_to_run
from tests.verbs import Ended

BLOCKS = blocks_to_run()
#: A verdict, or a question that the logs do not answer.
ANSWERED = (0, 1, 3)


def of_kind(kind: str) -> pytest.MarkDecorator:
    """Parametrize a test over the blocks of a kind."""
    found = [block for block in BLOCKS if block.kind == kind]
    return pytest.mark.parametrize("block", found, ids=[f"{block.document}:{block.line}" for block in found])


@pytest.fixture
def folder(audited_slice: tuple[Path, Ended], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the lake of the slice, under the name that the documents give it, and the command on PATH."""
    (tmp_path / "highwater-lake").symlink_to(audited_slice[0] / "lake")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
    return tmp_path


@of_kind(PYTHON)
def test_python_runs(block: Block, folder: Path, spark: SparkSession) -> None:
    """The JVM of the ring is in another folder: it needs the whole path of the lake."""
    text = block.text.replace("highwater-lake", str(folder / "highwater-lake"))
    exec(compile(text, f"{block.document}:{block.line}", "exec"), {"spark": spark})


@of_kind(SQL)
def test_sql_is_answered(block: Block, folder: Path, spark: SparkSession) -> None:
    """Documents show the views in Spark's SQL."""
    register(spark, folder / "highwater-lake")
    assert run_query(spark, block.text).column_names


@of_kind(COMMANDS)
@pytest.mark.usefixtures("folder")
def test_commands_are_answered(block: Block) -> None:
    for command in block.commands:
        done = subprocess.run(["highwater", *command], capture_output=True, text=True, check=False)
        assert done.returncode in ANSWERED, (command, done.stderr)
        assert done.stdout or command[0] == "audit"

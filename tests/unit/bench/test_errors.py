"""docs/errors.md holds: each wrong use that starts no Spark is run."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.bench.errors import ROOT, run
from tests.bench.wrong_uses import DISK, GROUPS, Case

ROWS = (ROOT / "docs" / "errors.md").read_text(encoding="utf-8").splitlines()
CASES = [case for cases in GROUPS.values() for case in cases]


def _can_mount() -> bool:
    tried = ["unshare", "--mount", "mount", "-t", "tmpfs", "tmpfs", "/mnt"]
    return (
        shutil.which("unshare") is not None and not subprocess.run(tried, capture_output=True, check=False).returncode
    )


@pytest.mark.parametrize("case", [case for case in CASES if not case.is_spark], ids=lambda case: case.what)
def test_a_wrong_use_is_told_in_one_sentence_and_leaves_nothing(case: Case, tmp_path: Path) -> None:
    if case.around == DISK and not _can_mount():
        pytest.skip("no file system can be mounted here")
    ended = run(case, tmp_path)
    assert list(ended.problems()) == []
    assert ended.row() in ROWS


def test_the_document_has_each_once() -> None:
    written = [row.split(" | ")[0].removeprefix("| ") for row in ROWS if row.startswith("| ") and "`" in row]
    assert written == [case.what for case in CASES if case.what in written or not case.is_spark]

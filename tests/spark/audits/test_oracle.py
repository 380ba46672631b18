"""Gold and silver hold what they held: rows and hashes of each table, kept in tests/data/oracle.json."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.bench.oracle import CORPORA, ROOT, contents_of, differences, folder_of, read
from tests.verbs import Ended


def test_the_slice_in_one_run(audited_slice: tuple[Path, Ended]):
    assert differences(read()["slice"]["whole"], contents_of(audited_slice[0] / "lake")) == []


@pytest.mark.long
@pytest.mark.parametrize("name", sorted(read()))
def test_an_input_whole_cut_and_with_a_late_file(name: str):
    if not folder_of(name).is_dir():
        pytest.skip(f"{CORPORA} is not beside this checkout")
    ways = [argument for way in read()[name] for argument in ("--way", way)]
    command = [sys.executable, "-m", "tests.bench.oracle", str(folder_of(name)), *ways]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout

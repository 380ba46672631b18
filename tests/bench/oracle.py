"""What gold and silver hold after audits of five inputs: ``python -m tests.bench.oracle [INPUTS...] [--write]``

    python -m tests.bench.oracle                      all that the oracle knows and this machine has
    python -m tests.bench.oracle ../shared/corpora/kip101 --write

Each input is audited whole; in three runs, its logs cut at two instants; and in three runs of which the last one has
a request log of the first period, which came late. Counts and hashes of all tables (`tests.bench.contents`) are
compared with those in tests/data/oracle.json; ``--write`` puts them there. Ends with 1 where one differs. What kills
leave behind is the crash suite's: `tests/crash` compares it with a run that nobody killed.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from os.path import commonpath, relpath
from pathlib import Path

from deltalake import DeltaTable

from highwater.schemas.catalog import TABLES
from tests.bench.contents import content_of, row_texts
from tests.cuts import cut_evenly, deliver

ROOT = Path(__file__).resolve().parents[2]
ORACLE = ROOT / "tests/data/oracle.json"
SLICE = ROOT / "tests/data/slice"
CORPORA = ROOT.parent / "shared/corpora"
NAMES = ("slice", "kip101", "kraft39-faults", "zk28-faults", "kraft37-disk")
LAYERS = ("silver", "gold")
#: What tells of the run, or of when it was made.
LEFT_OUT = ("gold.runs",)
PIECES = 3
#: The id of a file.
_FILE = re.compile(rb"(?<=\"file_id\":\")[0-9a-f]+(?=\")")

#: By table its rows and their hash; by way of auditing; by input.
Contents = dict[str, str]
Oracle = dict[str, dict[str, Contents]]


def folder_of(name: str) -> Path:
    """The logs of an input of the oracle."""
    return SLICE if name == "slice" else CORPORA / name


def contents_of(lake: Path) -> Contents:
    """Rows and hash of each table of gold and silver.

    The id of a file of a data directory is of its path, which is that of a folder of the day: such files are told by
    where they lay below the folder that holds all of them.
    """
    files = DeltaTable(lake / "bronze/data_files").to_pyarrow_table(columns=["file_id", "path"]).to_pylist()
    top = commonpath([file["path"] for file in files]) if files else ""
    places = {file["file_id"].encode(): relpath(file["path"], top).encode() for file in files}
    contents = {}
    for spec in TABLES:
        if spec.layer in LAYERS and spec.full_name not in LEFT_OUT:
            rows = (_FILE.sub(lambda id_: places.get(id_[0], id_[0]), row) for row in row_texts(lake, spec))
            content = content_of(rows)
            contents[spec.full_name] = f"{content.rows} {content.digest}"
    return contents


def audited(folders: Iterable[Path], place: Path) -> Contents:
    """Audits of folders, one after the other, into one lake; and what it holds then."""
    for folder in folders:
        command = [sys.executable, "-m", "highwater.jobs.cli", "audit", str(folder), "--lake", str(place / "lake")]
        ended = subprocess.run([*command, "--out", str(place / "report")], capture_output=True, text=True, check=False)
        if ended.returncode not in (0, 1, 3):
            raise RuntimeError(f"{folder}: {ended.stderr}")
    return contents_of(place / "lake")


def whole(logs: Path, place: Path) -> Contents:
    """One run."""
    return audited([logs], place)


def in_three(logs: Path, place: Path) -> Contents:
    """Three runs, each with the logs of the next period."""
    return audited(_arriving(cut_evenly(logs, place / "pieces", PIECES), place / "logs"), place)


def with_late_file(logs: Path, place: Path) -> Contents:
    """Three runs; the last one has a request log of the first period, too."""
    pieces = cut_evenly(logs, place / "pieces", PIECES)
    late = next(
        (path for path in sorted(pieces[0].rglob("*")) if path.is_file() and "request" in path.name),
        next(path for path in sorted(pieces[0].rglob("*")) if path.is_file()),
    )
    target = pieces[-1] / late.relative_to(pieces[0])
    target.parent.mkdir(parents=True, exist_ok=True)
    late.rename(target)
    return audited(_arriving(pieces, place / "logs"), place)


WAYS: dict[str, Callable[[Path, Path], Contents]] = {
    "whole": whole,
    "in_three": in_three,
    "with_late_file": with_late_file,
}


def _arriving(pieces: Sequence[Path], folder: Path) -> Iterator[Path]:
    """The folder, each time with one piece more."""
    for piece in pieces:
        deliver(piece, folder)
        yield folder


def read() -> Oracle:
    """The oracle as it is kept."""
    oracle: Oracle = json.loads(ORACLE.read_text()) if ORACLE.exists() else {}
    return oracle


def differences(expected: Contents, contents: Contents) -> list[str]:
    """Tables whose rows are not those expected."""
    tables = sorted(set(expected) | set(contents))
    return [
        f"{table}: {expected.get(table, 'none')} is now {contents.get(table, 'none')}"
        for table in tables
        if expected.get(table) != contents.get(table)
    ]


def main() -> int:
    """Compare or write, and print what differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("inputs", nargs="*", type=Path, help="folders of logs, named in the oracle by their last part")
    parser.add_argument("--way", action="append", choices=tuple(WAYS), help="only this way; may be given several times")
    parser.add_argument("--write", action="store_true", help="put what there is into the oracle")
    asked = parser.parse_args()
    oracle, code = read(), 0
    inputs = asked.inputs or [folder for name in NAMES if (folder := folder_of(name)).is_dir()]
    for logs in inputs:
        for way in asked.way or WAYS:
            with tempfile.TemporaryDirectory() as place:
                contents = WAYS[way](logs.resolve(), Path(place))
            expected = oracle.get(logs.name, {}).get(way, {})
            differing = differences(expected, contents)
            print(f"{logs.name}, {way}: {len(differing)} of {len(contents)} tables differ", flush=True)
            for line in differing:
                print(f"  {line}")
            code |= bool(differing)
            oracle.setdefault(logs.name, {})[way] = contents
            if asked.write:
                ORACLE.write_text(json.dumps(oracle, indent=1, sort_keys=True) + "\n")
    return 0 if asked.write else code


if __name__ == "__main__":
    sys.exit(main())

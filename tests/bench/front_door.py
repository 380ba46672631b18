"""Write what `highwater demo` prints today into README.md, and a picture of its page to docs/report.png.

    python -m tests.bench.front_door

The picture needs Chromium. A test compares the block of README.md with what the demo prints.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from tests.browser.driver import CHROMIUM, FLAGS

ROOT: Final = Path(__file__).resolve().parents[2]
README: Final = ROOT / "README.md"
PICTURE: Final = ROOT / "docs" / "report.png"
_SIZE: Final = "1400,900"
_AGE: Final = re.compile(r"\s+\(\d+\s+\w+\s+ago\)")
_BLOCK: Final = re.compile(r"(?<=^\$ highwater demo\n).*?(?=^\.\.\.$)", re.MULTILINE | re.DOTALL)


def head_of(printed: str) -> str:
    """Return what README.md shows of the demo: the answer and the verdict, without the incidents and the age."""
    return _AGE.sub("", printed.partition("\nWhat happened")[0].strip("\n")) + "\n"


def shown_in(document: str) -> str:
    """Return the output of the demo in a document."""
    match = _BLOCK.search(document)
    assert match is not None
    return match[0]


def main() -> None:
    """Run the demo, and write both files."""
    with tempfile.TemporaryDirectory() as folder:
        command = [
            sys.executable,
            "-m",
            "highwater.jobs.cli",
            "demo",
            "--no-open",
            "--folder",
            f"{folder}/highwater-demo",
        ]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
        text = README.read_text(encoding="utf-8")
        README.write_text(text.replace(shown_in(text), head_of(done.stdout)), encoding="utf-8")
        print(f"wrote {README}")
        if CHROMIUM is None:
            print("no Chromium: docs/report.png stays as it is")
            return
        page = Path(folder, "highwater-demo", "report", "report.html").as_uri()
        picture = [f"--window-size={_SIZE}", f"--screenshot={PICTURE}", f"--user-data-dir={folder}/profile"]
        subprocess.run([CHROMIUM, *FLAGS, *picture, page], capture_output=True, check=True, timeout=120)
        print(f"wrote {PICTURE}")


if __name__ == "__main__":
    main()

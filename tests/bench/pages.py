"""Whether reports open in Chromium: ``python -m tests.bench.pages REPORT...``

Each REPORT is a folder with ``report.html``. Prints size, seconds until the page's scripts are done, what the console
complained of, and addresses that the page asked for beside itself. Ends with 1 if any page did either.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from tests.bench.figures import markdown
from tests.browser.driver import CHROMEDRIVER, CHROMIUM, Browser

HEADS = ("report", "MB", "open after s", "complaints", "requests")


def main(folders: list[str]) -> int:
    """Open, and print a table."""
    if not (CHROMIUM and CHROMEDRIVER):
        sys.exit("tests.bench.pages: needs Chromium and ChromeDriver")
    rows = []
    with tempfile.TemporaryDirectory() as scratch:
        browser = Browser(Path(scratch))
        try:
            for folder in folders:
                page = (Path(folder) / "report.html").resolve()
                begun = time.monotonic()
                browser.open(page.as_uri())
                opened_s = time.monotonic() - begun
                complaints = browser.complaints()
                for complaint in complaints:
                    print(f"{folder}: {complaint}", file=sys.stderr)
                foreign = [address for address in browser.requests() if address != page.as_uri()]
                size_mb = page.stat().st_size / 1e6
                rows.append((folder, f"{size_mb:.2f}", f"{opened_s:.1f}", str(len(complaints)), str(len(foreign))))
        finally:
            browser.close()
    print("\n".join(markdown(HEADS, rows)))
    return int(any(row[3] != "0" or row[4] != "0" for row in rows))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

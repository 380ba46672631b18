"""The page in the user's browser."""

from __future__ import annotations

import os
import sys
import webbrowser

from highwater.pipelines.base.console import Console
from highwater.pipelines.base.errors import InputError
from highwater.pipelines.storage.place import Place, Uri, resolved

PAGE = "report.html"


def require_local(out: Place) -> None:
    """Raise an error if the page is in a store, where no browser can open it.

    Raises:
        InputError: the folder is in a store.
    """
    if isinstance(out, Uri):
        raise InputError(out, "is in a store, where no browser reads", "leave out --open, or give a folder as --out")


def open_page(console: Console, out: Place) -> None:
    """Open the page of a report; without a browser print its path."""
    page = resolved(out) / PAGE
    if not (_has_display() and webbrowser.open(f"file://{page}")):
        console.note(f"no browser could be opened here: the page is {page}, one file that can be copied anywhere")


def _has_display() -> bool:
    # Else a browser of text would take the terminal over.
    return not sys.platform.startswith("linux") or bool(os.environ.keys() & {"DISPLAY", "WAYLAND_DISPLAY"})

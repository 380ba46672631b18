"""``report.html``: one file without anything outside it. Pure."""

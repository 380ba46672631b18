"""One file per subject of the text logs; each declares its `TEMPLATES`."""

"""Stands where highwater stands, to see what a DAG calls: writes its arguments down, ends as it is told.

    recorder.py FOLDER VERB ARGUMENTS...

`FOLDER/codes.json` has exit codes by verb, `FOLDER/says.json` what it prints; `FOLDER/calls.jsonl` receives the
arguments, and of the environment what a driver under spark-submit is told.
"""

import json
import os
import sys
from pathlib import Path


def main(folder: Path, arguments: list[str]) -> int:
    told = {"arguments": arguments, "driver_python": os.environ.get("PYSPARK_DRIVER_PYTHON")}
    with (folder / "calls.jsonl").open("a", encoding="utf-8") as calls:
        calls.write(json.dumps(told) + "\n")
    codes = folder / "codes.json"
    verbs = json.loads(codes.read_text(encoding="utf-8")) if codes.is_file() else {}
    says = folder / "says.json"
    texts = json.loads(says.read_text(encoding="utf-8")) if says.is_file() else {}
    for text in (texts[word] for word in arguments if word in texts):
        print(text, file=sys.stderr if text.startswith("highwater: ") else sys.stdout)
    return next((verbs[word] for word in arguments if word in verbs), 0)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))

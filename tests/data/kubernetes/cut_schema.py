"""Cut the schema of the kinds in deploy/kubernetes out of the package `kubernetes-validate`.

The package has the schema of all kinds, 100 MB of them.

python tests/data/kubernetes/cut_schema.py SITE_PACKAGES/kubernetes_validate/kubernetes-json-schema/v1.31.0-local-strict
"""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

KINDS = {
    "ConfigMap": "configmap-v1",
    "CronJob": "cronjob-batch-v1",
    "Deployment": "deployment-apps-v1",
    "PersistentVolumeClaim": "persistentvolumeclaim-v1",
    "Role": "role-rbac-v1",
    "RoleBinding": "rolebinding-rbac-v1",
    "Service": "service-v1",
    "ServiceAccount": "serviceaccount-v1",
}
TARGET = Path(__file__).with_name("schema.json.gz")


def without_descriptions(part: Any) -> Any:
    """Return a schema without its texts. A property may be called description."""
    if isinstance(part, dict):
        kept = {key: value for key, value in part.items() if key != "description" or not isinstance(value, str)}
        return {key: without_descriptions(value) for key, value in kept.items()}
    return [without_descriptions(each) for each in part] if isinstance(part, list) else part


def references(part: Any) -> Iterator[str]:
    """Yield the names of the definitions that a schema refers to."""
    if isinstance(part, dict):
        if isinstance(reference := part.get("$ref"), str):
            yield reference.rpartition("/")[2]
        for value in part.values():
            yield from references(value)
    elif isinstance(part, list):
        for value in part:
            yield from references(value)


def main(folder: Path) -> None:
    """Write the schema: a schema by kind, and the definitions that they refer to."""
    definitions = json.loads((folder / "_definitions.json").read_text(encoding="utf-8"))["$defs"]
    kinds = {kind: json.loads((folder / f"{name}.json").read_text(encoding="utf-8")) for kind, name in KINDS.items()}
    wanted, seen = list(references(kinds)), set()
    while wanted:
        name = wanted.pop()
        if name not in seen:
            seen.add(name)
            wanted += references(definitions[name])
    cut = {"kinds": kinds, "$defs": {name: definitions[name] for name in sorted(seen)}}
    text = json.dumps(without_descriptions(cut), sort_keys=True).replace("/api/_definitions.json#", "#")
    TARGET.write_bytes(gzip.compress(text.encode(), mtime=0))


if __name__ == "__main__":
    main(Path(sys.argv[1]))

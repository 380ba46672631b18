"""Notes the code of each component under its number: ``python -m tests.bench.components``

To be run when `tests/unit/platform/test_components.py` finds other code under the same number, once it is settled that
nothing the component gives of any input differs, or once its number in `pipelines/base/fingerprint.py` is raised.
"""

from __future__ import annotations

from tests.components import PINNED, now


def main() -> int:
    """Write tests/data/components.toml."""
    tables = (f'[{name}]\nnumber = {row["number"]}\ncode = "{row["code"]}"\n' for name, row in now().items())
    PINNED.write_text("\n".join(tables), encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

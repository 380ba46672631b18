"""Audits of Kafka's replication from Python: `audit`, `open`, `spark`.

The package that a wheel installs. No user's module named ``jobs``, ``pipelines`` or ``schemas`` meets ours. In a
checkout these three are links to the folders of the repository. A wheel has the folders here, and ``conf`` and
``airflow_dags`` with them (`hatch_build.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from highwater.interface import Audit, audit, open, spark

__all__ = ["Audit", "audit", "open", "spark"]


def __getattr__(name: str) -> Any:
    """Return a public name. Imports Spark at the first use, and not before."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from highwater import interface

    return getattr(interface, name)

"""Audits of Kafka's replication from Python: `audit`, `open`, `spark`.

The package that a wheel installs. ``jobs``, ``pipelines``, ``schemas``, ``conf`` and ``airflow_dags`` are its folders
there, so that no user's module of such a name meets ours; in a checkout they are beside it (`hatch_build.py`).
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

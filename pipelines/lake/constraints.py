"""Broken constraints of a table as one line, whoever found them: Delta, a task, or the driver."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from pipelines.base.errors import LakeError
from pipelines.lake.table_files import ConstraintBroken

#: How Delta words a broken constraint, with the values of the row, each on a line of its own; and how our tasks do.
_BROKEN = re.compile(
    r"(?:\[DELTA_(?:VIOLATE_CONSTRAINT|NOT_NULL_CONSTRAINT)\w*\]|ConstraintBroken: (?P<table>[\w.]+):)"
    r" *(?P<what>.*(?:\n - .*)*)"
)


@contextmanager
def constraints_kept(table: str) -> Iterator[None]:
    """Say it so; Spark wraps it in the traces of the task, the stage and the job.

    Raises:
        LakeError: a row within the block breaks a constraint of the table.
    """
    try:
        yield
    except ConstraintBroken as error:
        raise LakeError(str(error)) from error
    except (Py4JJavaError, PySparkException) as error:
        broken = _BROKEN.search(str(error))
        if broken is None:
            raise
        raise LakeError(f"{broken['table'] or table}: {' '.join(broken['what'].split())}") from error

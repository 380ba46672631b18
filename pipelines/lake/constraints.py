"""Broken constraints of a table as one line, whether a task or the driver met them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from pipelines.base.errors import LakeError
from pipelines.lake.table_files import ConstraintBroken

_BROKEN = re.compile(r"ConstraintBroken: (.*)")


@contextmanager
def constraints_kept() -> Iterator[None]:
    """Say it so; Spark wraps it in the traces of the task, the stage and the job.

    Raises:
        LakeError: a row within the block breaks a constraint of its table.
    """
    try:
        yield
    except ConstraintBroken as error:
        raise LakeError(str(error)) from error
    except (Py4JJavaError, PySparkException) as error:
        broken = _BROKEN.search(str(error))
        if broken is None:
            raise
        raise LakeError(broken[1]) from error

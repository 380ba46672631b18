"""Input of verbs without Spark."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from highwater.jobs.lakes import list_tables
from highwater.pipelines.base.console import Console
from highwater.pipelines.base.values import micros
from highwater.pipelines.inquiry.read_lines import named
from highwater.pipelines.lake.reader import LakeReader
from highwater.pipelines.storage.place import Place


class Question(NamedTuple):
    """Options of inquiries and metrics."""

    console: Console
    lake: Place  #: folder of the lake
    cluster: str | None = None  #: name or id of one, where the lake has several; None: no one said
    #: time_from, time_until: of what is asked for, the end exclusive
    time_from: datetime | None = None
    time_until: datetime | None = None
    form: str = "text"  #: of the answer: ``text`` or ``json``; of metrics ``openmetrics``

    @property
    def reader(self) -> LakeReader:
        """Return a reader of the lake's tables.

        Raises:
            InputError: the lake does not exist.
        """
        return LakeReader(self.lake, list_tables(self.lake))

    @property
    def cluster_id(self) -> str | None:
        """Return the id of the named cluster. None if no cluster is named.

        Raises:
            InputError: the lake has no cluster of this name.
        """
        return None if self.cluster is None else named(self.reader, self.cluster)

    @property
    def window(self) -> tuple[int | None, int | None]:
        """Return start (inclusive) and end (exclusive) of the window, microseconds since the epoch. None if open."""
        return micros(self.time_from), micros(self.time_until)

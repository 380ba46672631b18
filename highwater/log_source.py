"""Broker logs as a data source of Spark: ``spark.read.format("kafka-broker-log").load(PATH)``."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from highwater.pipelines.base.config import load_config
from highwater.pipelines.bronze.log_source import columns_of, facts_of, how_of, plan, records

#: Keys of ``[ingest]`` of the configuration by option.
_SETTINGS = {"timezone": "ingest.timezone", "log_format": "ingest.log_format", "cluster": "ingest.cluster"}


class KafkaBrokerLog(DataSource):
    """Spark data source of broker log records. Option ``facts`` returns the rows of that silver table instead."""

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return "kafka-broker-log"

    def schema(self) -> StructType:
        """Return the columns of the log records, or of the silver table in option ``facts``."""
        return columns_of(self.options.get("facts"))

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader of the paths that `load` was given."""
        return _LogReader(dict(self.options))


class _LogReader(DataSourceReader):
    """Reads files, or ranges of them, in a task each."""

    def __init__(self, options: Mapping[str, str]) -> None:
        settings = {key: options.get(option) for option, key in _SETTINGS.items()}
        self._config = load_config(None, settings).ingest
        self._paths = json.loads(options["paths"]) if "paths" in options else [options["path"]]
        self._facts = options.get("facts")
        self._how = how_of(self._config)

    def partitions(self) -> list[InputPartition]:
        """Read the files once for layout and broker. Return the files, or ranges of them, one per task."""
        return [InputPartition(unit) for unit in plan(self._paths, self._config)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a partition."""
        if self._facts is None:
            yield from records(partition.value, self._how)
        else:
            yield from facts_of(self._facts, partition.value, self._how)

"""Great Expectations, imported only here: suites, validation results and Data Docs.

It takes a second and more to import, so nothing imports this module before there is something to ask. Its context is
ephemeral: nothing is configured outside the code, and nothing is kept but the answers.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

# Before the import: it reports its own use to its makers otherwise.
os.environ["GX_ANALYTICS_ENABLED"] = "false"

import great_expectations as gx
import great_expectations.expectations as gxe
from great_expectations.core.expectation_suite import ExpectationSuite

from highwater.pipelines.base.errors import HighwaterError, InputError
from highwater.pipelines.quality.expectation import Expectation, Severity

_SOURCE = "lake"
_BATCH = "rows"
_SITE = "highwater"
#: Rows that an answer shows.
_SHOWN_MAX = 5

Chosen = Sequence[tuple[Expectation, Severity]]


class GreatExpectations:
    """An ephemeral context of Great Expectations, for rows of any table."""

    def __init__(self) -> None:
        logging.getLogger("great_expectations").setLevel(logging.ERROR)
        context: Any = gx.get_context(mode="ephemeral")
        context.variables.progress_bars = {"globally": False, "metric_calculations": False}
        self._context = context
        self._source = context.data_sources.add_spark(_SOURCE, persist=False)

    def ask(self, table: str, rows: Any, chosen: Chosen) -> dict[str, int]:
        """Return by id the number of rows that fail each check.

        Args:
            rows: DataFrame with all columns that the checks need. Cache it: it is read several times.
        """
        definition = self._define_validation(table, chosen)
        done = definition.run(
            batch_parameters={"dataframe": rows},
            result_format={"result_format": "SUMMARY", "partial_unexpected_count": _SHOWN_MAX},
        )
        answers = {}
        for result in done.results:
            expectation_id = result.expectation_config.meta["expectation_id"]
            if result.exception_info and result.exception_info.get("raised_exception"):
                raise HighwaterError(f"{expectation_id} could not be asked: {result.exception_info}")
            answers[expectation_id] = int(result.result.get("unexpected_count") or 0)
        return answers

    def write_docs(self, folder: Path) -> Path:
        """Write the Data Docs of all validations. Return the page to open.

        Raises:
            InputError: the folder contains a link, which would redirect writes.
        """
        for link in (path for path in folder.rglob("*") if path.is_symlink()):
            raise InputError(link, "is a link, and Data Docs are written through none", "give --docs an empty folder")
        store = {"class_name": "TupleFilesystemStoreBackend", "base_directory": str(folder.resolve())}
        self._context.add_data_docs_site(
            _SITE,
            {
                "class_name": "SiteBuilder",
                "store_backend": store,
                "site_index_builder": {"class_name": "DefaultSiteIndexBuilder"},
            },
        )
        self._context.build_data_docs(site_names=[_SITE])
        return folder / "index.html"

    def _define_validation(self, table: str, chosen: Chosen) -> Any:
        suite = ExpectationSuite(name=table, expectations=[_build_expectation(*item) for item in chosen])
        suite = self._context.suites.add_or_update(suite)
        names = {asset.name for asset in self._source.assets}
        if table in names:
            batch = self._source.get_asset(table).get_batch_definition(_BATCH)
        else:
            batch = self._source.add_dataframe_asset(table).add_batch_definition_whole_dataframe(_BATCH)
        definition = gx.ValidationDefinition(name=table, data=batch, suite=suite)
        return self._context.validation_definitions.add_or_update(definition)


def _build_expectation(expectation: Expectation, severity: Severity) -> Any:
    name, arguments = expectation.great_expectation
    meta: Mapping[str, str] = {"expectation_id": expectation.expectation_id, "question": expectation.question}
    return getattr(gxe, name)(**arguments, meta=dict(meta), severity=severity)

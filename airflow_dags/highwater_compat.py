"""Names of Airflow that moved from version 2 to 3, each imported once."""

from __future__ import annotations

try:
    from airflow.sdk import DAG, Asset, BaseSensorOperator, Context, CronDataIntervalTimetable, Param, chain
    from airflow.sdk.exceptions import AirflowException, AirflowFailException, AirflowSkipException

    def make_asset(name: str, uri: str, group: str) -> Asset:
        """Return an asset, which Airflow 2 calls a dataset and identifies by its URI alone."""
        return Asset(name=name, uri=uri, group=group)

except ImportError:  # Airflow 2.11
    from airflow import DAG
    from airflow.datasets import Dataset as Asset
    from airflow.exceptions import AirflowException, AirflowFailException, AirflowSkipException
    from airflow.models.baseoperator import chain
    from airflow.models.param import Param
    from airflow.sensors.base import BaseSensorOperator
    from airflow.timetables.interval import CronDataIntervalTimetable
    from airflow.utils.context import Context

    def make_asset(name: str, uri: str, group: str) -> Asset:
        """An asset is called a dataset there, and has no name but its URI."""
        return Asset(uri)


__all__ = [
    "DAG",
    "AirflowException",
    "AirflowFailException",
    "AirflowSkipException",
    "Asset",
    "BaseSensorOperator",
    "Context",
    "CronDataIntervalTimetable",
    "Param",
    "chain",
    "make_asset",
]

"""Metrics that people alert on, in the views ``broker_metrics`` and ``request_metrics``.

Both views have a row per minute. Export names the metrics as Kafka's MBeans and jmx_exporter do.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from highwater.schemas.package_data import read_toml

# Values of `Metric.kind`.
GAUGE: Final = "gauge"
METER: Final = "meter"
HISTOGRAM: Final = "histogram"

#: Quantiles of request times, as labels show them, by suffix of their columns.
QUANTILES: Final = {"p50": "0.50", "p95": "0.95", "p99": "0.99", "p999": "0.999"}


class Metric(NamedTuple):
    """One metric of Kafka's brokers, as ``metrics.toml`` declares it; of requests, with a series per kind."""

    column: str
    domain: str
    type: str
    name: str
    kind: str
    kept_by: str
    rebuilt: str

    def mbean(self, request: str | None = None) -> str:
        """Return the JMX object name."""
        tag = "" if request is None else f",request={request}"
        return f"{self.domain}:type={self.type},name={self.name}{tag}"


_BY_VIEW: Final = {
    view: tuple(Metric(**given) for given in metrics)
    for view, metrics in read_toml(__package__ or "", "metrics.toml").items()
}
BROKER_METRICS: Final = _BY_VIEW["broker"]
#: By kind of request.
(REQUESTS,) = _BY_VIEW["requests"]
REQUEST_TIMES: Final = _BY_VIEW["request_times"]


def build_metrics_markdown() -> str:
    """Return a row per metric: its JMX name, where Kafka keeps it, and from what it is rebuilt."""
    lines = ["| MBean | kind | kept by | rebuilt from |", "|---|---|---|---|"]
    for metric in (*BROKER_METRICS, REQUESTS, *REQUEST_TIMES):
        mbean = metric.mbean() if metric in BROKER_METRICS else metric.mbean("*")
        lines.append(f"| `{mbean}` | {metric.kind} | {metric.kept_by} | {metric.rebuilt} |")
    return "\n".join(lines) + "\n"

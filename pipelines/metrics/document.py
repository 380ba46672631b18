"""The table of metrics in docs/metrics.md, made from their declarations. Pure."""

from __future__ import annotations

from pipelines.metrics.mbeans import METRICS


def metrics_markdown() -> str:
    """A row per metric: its JMX name, where Kafka keeps it, and from what it is rebuilt."""
    lines = ["| MBean | kind | kept by | rebuilt from |", "|---|---|---|---|"]
    for metric in METRICS:
        tags = "".join(f",{tag}=*" for tag in metric.tags)
        mbean = f"`{metric.domain}:type={metric.type},name={metric.name}{tags}`"
        lines.append(f"| {mbean} | {metric.kind} | {metric.kept_by} | {metric.rebuilt} |")
    return "\n".join(lines) + "\n"

"""A lake's tables and views in a Spark session of one's own: ``register(spark, lake)``."""

from highwater.pipelines.lake.views import register

__all__ = ["register"]

"""The configuration of a command, checked against rules and expectations."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from highwater.pipelines.base.config import Config, load_config


def check_config(conf: Path | None, settings: Mapping[str, object]) -> Config:
    """Return the configuration, with checked rules and expectations.

    Args:
        conf: configuration file.
        settings: values by dotted key. None leaves the value of the file.

    Raises:
        ConfigError: a key, a rule or an expectation is unknown, or a value is invalid.
    """
    config = load_config(conf, settings)
    if config.audit.severity:
        from highwater.pipelines.rules.registry import require_rules

        require_rules(config.audit.severity, conf or "default.toml")
    if config.quality.severity:
        # Declarations of all tables: hardly anyone needs them here.
        from highwater.pipelines.quality.suites import require_expectations

        require_expectations(config.quality.severity, conf or "default.toml")
    return config

"""What all tests without a JVM share."""

from tests.catalog import in_the_catalog  # noqa: F401

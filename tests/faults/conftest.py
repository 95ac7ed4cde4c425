"""Faults share the integration tests' observations of clean cases, and their warm process."""

from tests.integration.conftest import observed, warm

__all__ = ["observed", "warm"]

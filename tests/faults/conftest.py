"""Faults share the integration tests' observations of clean cases."""

from tests.integration.conftest import observed

__all__ = ["observed"]

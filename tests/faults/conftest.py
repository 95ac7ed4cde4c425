"""Faults share the integration tests' observations of clean cases, and their warm process."""

from tests.integration.conftest import first_cases, observed, same_random_numbers, warm

__all__ = ["first_cases", "observed", "same_random_numbers", "warm"]

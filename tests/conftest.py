"""Tests of the plugin run pytest in folders of their own."""

pytest_plugins = ("pytester",)

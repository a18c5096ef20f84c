"""Loads the plugin that starts the tests' engines, before Django reads its settings."""

pytest_plugins = ["tests.engines"]

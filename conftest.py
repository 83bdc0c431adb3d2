"""Registers the test plugin that holds docs/promises.md to its word."""

pytest_plugins = ["bq_harper_assets_tests.promises"]

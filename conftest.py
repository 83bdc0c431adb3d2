"""Registers the test plugins: the parts of the suite, and docs/promises.md held to its word."""

pytest_plugins = ["bq_harper_assets_tests.kinds", "bq_harper_assets_tests.promises"]

"""Registers the test plugins: parts and order of the suite, docs/promises.md held to its word."""

pytest_plugins = [f"bq_harper_assets_tests.{name}" for name in ("kinds", "order", "promises")]

"""Defines the local stack's errors, with the standard library only: set-up imports it first."""

from bq_harper_assets.errors import BqhError

SET_UP_AGAIN = "make setup"


class SetupError(BqhError):
    """A tool that the local stack or Spark needs is missing, too old or cannot be installed."""


class StackError(BqhError):
    """A server of the local stack cannot be started, reached or stopped."""

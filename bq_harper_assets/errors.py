"""The root of every error a user may see.

BqhError
├── ConfigError      contract/loading/problems.py: what the user wrote is wrong; nothing was started
├── SchemaMismatch   schema/errors.py: the contract does not fit the source's columns
├── SetupError       local/errors.py: a tool is missing, too old or cannot be installed
├── StackError       local/errors.py: a local server cannot be started, reached or stopped
├── BigQueryError    stores/bigquery/errors.py, HarperError stores/harper/errors.py: a store said no
├── CircuitOpen      retries/breaker.py: a store said no too often and is left alone for a minute
├── LedgerError      ledger/errors.py: a lease, a plan or a commit was refused
├── SyncError        sync/errors.py: some cells are not done, or their turn could not begin
├── TransientError   below: mixed into those of the others after which trying again may help
└── Stopped          below: a signal or Terminate has ended the command's run
"""


class BqhError(Exception):
    """Its text is complete, so the CLI prints it alone: what failed, what is safe, what to type."""

    exit_code = 1
    is_out_of_time = False  # the step may not go on any longer without a success


class TransientError(BqhError):
    """An operation failed that can be tried again; it is mixed into concrete error classes."""


class Stopped(BqhError):
    """A command's run was asked to end: its text says what is safe, its exit code which signal."""

    def __init__(self, said: str, signum: int) -> None:
        super().__init__(said)
        self.exit_code = 128 + signum

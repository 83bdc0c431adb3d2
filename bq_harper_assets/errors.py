"""The root of every error a user may see.

BqhError
├── ConfigError     contract/problems.py: what the user wrote is wrong; nothing was started
├── SetupError      local/errors.py: a tool is missing, too old or cannot be installed
└── StackError      local/errors.py: a local server cannot be started, reached or stopped
"""


class BqhError(Exception):
    """Its text is complete, so the CLI prints it alone: what failed, what is safe, what to type."""

    exit_code = 1

"""The root of every error a user may see.

BqhError
├── ConfigError     contract/problems.py: what the user wrote is wrong; nothing was started
├── SetupError      local/errors.py: a tool the local stack needs is missing or cannot be installed
└── StackError      local/errors.py: a server of the local stack cannot be started, reached or stopped
"""


class BqhError(Exception):
    """Its text is complete: what failed, what is safe, what to type next. The CLI prints it without a traceback."""

    exit_code = 1

"""An exit code means the same for every command, in the docs and in `--help`."""

from enum import IntEnum


class ExitCode(IntEnum):
    """Each number has one meaning; a signal that ends a command gives 128 + its number, as ever."""

    DONE = 0
    ERROR = 1
    USAGE = 2
    DIFFERS = 3
    PARTLY = 4
    CHANGED_SINCE = 5
    NOT_PROVED = 6


MEANINGS = {
    ExitCode.DONE: "all that was asked for is done, and what was looked at is equal",
    ExitCode.ERROR: "nothing is done, or a store did not answer",
    ExitCode.USAGE: "the configuration or the command is wrong; nothing was started",
    ExitCode.DIFFERS: "rows differ, cannot be stored or do not fit; they are named",
    ExitCode.PARTLY: "some cells are done or judged, and others are not",
    ExitCode.CHANGED_SINCE: "BigQuery has changed since the last sync; what was compared is equal",
    ExitCode.NOT_PROVED: "all cells are done, and the proof after them could not be made",
}
SIGNALS = "128 + N: signal N ended the command, such as 130 for Ctrl-C and 143 for SIGTERM"
_ANY = (ExitCode.DONE, ExitCode.ERROR, ExitCode.USAGE)  # of every command


def exit_codes(*used: ExitCode) -> str:
    """Writes the end of a command's help: the codes of every command, and its own."""
    shown = (f"  {code.value}  {MEANINGS[code]}" for code in sorted({*_ANY, *used}))
    return "\n".join(("\b", "Exit codes:", *shown))


def all_exit_codes() -> str:
    """Writes the end of `bqh --help`: all codes."""
    return f"{exit_codes(*ExitCode)}\n  {SIGNALS}"


# Of commands that run cells, and of commands that prove them.
RUN_EXITS = exit_codes(
    ExitCode.DIFFERS, ExitCode.PARTLY, ExitCode.CHANGED_SINCE, ExitCode.NOT_PROVED
)
PROOF_EXITS = exit_codes(ExitCode.DIFFERS, ExitCode.PARTLY, ExitCode.CHANGED_SINCE)

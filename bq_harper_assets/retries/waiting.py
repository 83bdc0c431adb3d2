"""Reports what this process waits for, in the same words to everybody who listens.

A wait is entered on the board when it begins and taken off when it ends. Every listener hears of
each wait that lasts longer than 5 seconds, and again every 30 seconds while it goes on.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

TOLD_AFTER_S = 5.0
TOLD_AGAIN_AFTER_S = 30.0
LOOK_EVERY_S = 1.0

TERMINAL = "terminal"  # the `place` of listeners that print to a person's terminal

_Say = Callable[[str], None]
_Text = str | Callable[[], str]  # either fixed, or worded again each time it is reported
Tell = Callable[[float], str | None]  # it words a wait; None means nothing to say


@dataclass
class _Entry:
    tell: Tell
    told_at: float | None = None


class Waits:
    """A board of waits is shared by all threads of a process, and watched while someone listens."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._entries: dict[int, _Entry] = {}
        self._listeners: list[tuple[_Say, str | None]] = []
        self._number = 0
        self._over = threading.Event()

    @contextmanager
    def listen(self, say: _Say, place: str | None = None) -> Iterator[None]:
        """Calls `say` with every wait that has to be reported while the block runs.

        Of several listeners with the same `place`, only the newest is called.
        """
        listener = (say, place)
        with self._lock:
            self._listeners.append(listener)
            if len(self._listeners) == 1:
                self._over = threading.Event()
                threading.Thread(target=self._watch, args=(self._over,), daemon=True).start()
        try:
            yield
        finally:
            with self._lock:
                self._listeners.remove(listener)
                if not self._listeners:
                    self._over.set()

    @contextmanager
    def waiting(
        self,
        what: _Text,
        then: _Text,
        *,
        since_s: float = 0.0,
        at_once: bool = False,
    ) -> Iterator[None]:
        """Enters "waits for `what`, since ...; `then`" for a wait that began `since_s` ago."""
        began = self._clock() - since_s
        moment = datetime.now(UTC) - timedelta(seconds=since_s)

        def tell(now: float) -> str | None:
            if not at_once and now - began < TOLD_AFTER_S:
                return None
            return f"waits for {_worded(what)}, since {moment:%H:%M:%S} UTC; {_worded(then)}"

        with self.told_by(tell):
            if at_once:
                self.look()
            yield

    @contextmanager
    def told_by(self, tell: Tell) -> Iterator[None]:
        """Enters a wait that words itself each time it is checked."""
        with self._lock:
            self._number += 1
            number = self._number
            self._entries[number] = _Entry(tell)
        try:
            yield
        finally:
            with self._lock:
                del self._entries[number]

    def tell(self, text: str) -> None:
        """Reports a text at once: it is for waits of other programs."""
        with self._lock:
            newest = {place: say for say, place in self._listeners}
            told = [s for s, place in self._listeners if place is None or newest[place] is s]
        for say in told:
            with suppress(Exception):  # a listener that fails must not stop the code that waits
                say(text)

    def look(self) -> None:
        """Reports every wait that is due now, each text once."""
        now = self._clock()
        with self._lock:
            entries = list(self._entries.values()) if self._listeners else []
        due = [e for e in entries if e.told_at is None or now - e.told_at >= TOLD_AGAIN_AFTER_S]
        texts: dict[str, None] = {}
        for entry in due:
            text: str | None = None
            with suppress(Exception):  # a wait that cannot be worded must not silence the others
                text = entry.tell(now)
            if text:
                entry.told_at = now
                texts[text] = None
        for text in texts:
            self.tell(text)

    def _watch(self, over: threading.Event) -> None:
        while not over.wait(LOOK_EVERY_S):
            self.look()


def _worded(text: _Text) -> str:
    return text if isinstance(text, str) else text()


def clock_text(in_s: float) -> str:
    """Returns the time of day that it will be in so many seconds."""
    return f"{datetime.now(UTC) + timedelta(seconds=in_s):%H:%M:%S} UTC"


# Stores, leases and Spark jobs all wait, but a process has only one terminal and one log.
WAITS = Waits()

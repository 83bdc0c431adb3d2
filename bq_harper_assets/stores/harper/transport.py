"""Sends one request to Harper: it keeps connections and timeouts, and notes unanswered writes."""

import os
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import requests
from urllib3.exceptions import ReadTimeoutError

from bq_harper_assets.contract.connections import HarperConnection
from bq_harper_assets.retries.retry import Call
from bq_harper_assets.retries.waiting import WAITS, clock_text
from bq_harper_assets.stores.harper.answers import (
    error_class,
    error_text,
    missing_rights,
    seconds_to_retry_after,
)
from bq_harper_assets.stores.harper.errors import (
    HarperError,
    HarperGarbled,
    HarperNotUnderstood,
    HarperUnauthorized,
    HarperUnavailable,
    HarperUnsafe,
)
from bq_harper_assets.stores.harper.login import login_to

# Harper closes a connection that is idle for 5 s, so one that is nearly so is not used again.
LONGEST_IDLE_S = 4.0
# If an older connection breaks, Harper or a gateway may have closed it in the meantime.
STALE_AFTER_S = 1.0
# Harper answers with an object, a list or a text.
_JSON_ENDS = {b"{": b"}", b"[": b"]", b'"': b'"'}


@dataclass(frozen=True)
class Timeouts:
    """Timeouts are the seconds to connect, and of silence before a request counts as unanswered."""

    connect_s: float = 10.0
    read_s: float = 60.0  # it is longer than the 45 s for which Harper queues a write
    slow_read_s: float = 600.0  # it is for operations that take longer the more rows there are


@dataclass(frozen=True)
class Request:
    """A request is one message to Harper; sending it twice must do no harm."""

    call: Call
    body: bytes = field(repr=False)
    timeout: tuple[float, float]
    writes: bool


@dataclass
class _Line:
    """A line is one connection, which one request at a time uses."""

    session: requests.Session
    answered_at: float | None = None

    def idle_s(self, now: float) -> float:
        return 0.0 if self.answered_at is None else now - self.answered_at


class _Body:
    """A body is read by the library once it is connected: that instant counts as the send."""

    def __init__(
        self, content: bytes, guard: Callable[[], None], clock: Callable[[], float]
    ) -> None:
        self._content = content
        self._guard = guard
        self._clock = clock
        self.sent_at: float | None = None

    def __len__(self) -> int:
        return len(self._content)

    def __iter__(self) -> Iterator[bytes]:
        # Connecting may take seconds, so the guard is asked only now.
        self._guard()
        self.sent_at = self._clock()
        yield self._content


class _Session(requests.Session):
    """This session never reads where a redirect leads."""

    def get_redirect_target(self, resp: requests.Response) -> None:
        return None


class Transport:
    """A transport sends requests to one Harper, from any number of threads."""

    def __init__(
        self,
        connection: HarperConnection,
        *,
        send_guard: Callable[[], None] | None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._login = login_to(connection)
        self.store = self._login.store
        self._send_guard = send_guard or (lambda: None)
        self._clock = clock
        self._lock = threading.Lock()
        self._idle: list[_Line] = []
        self._last_unanswered_at: float | None = None

    @property
    def last_unanswered_at(self) -> float | None:
        """Returns when the newest write was sent that Harper may apply unnoticed."""
        return self._last_unanswered_at

    def send(self, request: Request) -> bytes:
        """Returns the body of a 200; every other outcome raises an error."""
        line = self._borrow()
        what = f"{self.store} to answer {request.call}"
        ends = clock_text(sum(request.timeout))
        with WAITS.waiting(what, f"gives this try up at {ends} at the latest"):
            response = self._post(
                line, request, may_be_stale=line.idle_s(self._clock()) > STALE_AFTER_S
            )
            if response is None:
                line = self._new_line()
                response = self._post(line, request, may_be_stale=False)
        assert response is not None
        self._give_back(line)
        if _is_garbled(response):
            raise HarperGarbled(request.call, "answered 200 without a whole answer in it", 200)
        if _is_foreign(response):
            raise HarperNotUnderstood(request.call, "answered 200 and not with JSON", 200)
        if response.status_code == 200:
            return response.content
        raise self._refusal(request.call, response)

    def close(self) -> None:
        """Closes the idle connections; the next request makes new ones."""
        with self._lock:
            lines, self._idle = self._idle, []
        for line in lines:
            line.session.close()

    def _post(
        self, line: _Line, request: Request, *, may_be_stale: bool
    ) -> requests.Response | None:
        """Posts the request; returns None if the connection was stale."""
        body = _Body(request.body, self._send_guard, self._clock)
        is_answered = False
        try:
            response = line.session.post(
                self._login.url,
                data=body,
                headers={"Content-Type": "application/json", "Authorization": self._login.header},
                timeout=request.timeout,
                allow_redirects=False,
            )
            # A gateway may answer for a Harper that is still at work.
            is_answered = response.status_code not in (502, 504) and not (
                _is_garbled(response) or _is_foreign(response)
            )
            return response
        except requests.RequestException as error:
            error.request = None  # it contains the password
            if may_be_stale and _is_dropped(error):
                return None
            raise _no_answer(request, error, was_sent=body.sent_at is not None) from error
        finally:
            if not is_answered:
                line.session.close()
                if request.writes and body.sent_at is not None:
                    self._note_unanswered(body.sent_at)

    def _note_unanswered(self, sent_at: float) -> None:
        with self._lock:
            if self._last_unanswered_at is None or sent_at > self._last_unanswered_at:
                self._last_unanswered_at = sent_at

    def _borrow(self) -> _Line:
        now = self._clock()
        with self._lock:
            line = self._idle.pop() if self._idle else None
        if line is not None and line.idle_s(now) <= LONGEST_IDLE_S:
            return line
        if line is not None:
            line.session.close()
        return self._new_line()

    def _give_back(self, line: _Line) -> None:
        line.answered_at = self._clock()
        with self._lock:
            self._idle.append(line)

    def _new_line(self) -> _Line:
        session = _Session()
        # A proxy, a .netrc or an empty CA bundle of the environment must not be used.
        session.trust_env = False
        session.verify = os.environ.get("REQUESTS_CA_BUNDLE") or True
        return _Line(session)

    def _refusal(self, call: Call, response: requests.Response) -> HarperError:
        status = response.status_code
        text, error = error_text(response.content)
        kind = error_class(call, status, text)
        if 300 <= status < 400:
            host = urlsplit(response.headers.get("Location", "")).hostname
            return kind(call, f"redirects to {host or 'itself'}, which is not followed", status)
        said = f"answered {status}: {self._login.quote(text)}"
        if issubclass(kind, HarperUnavailable):
            wait = seconds_to_retry_after(response.headers.get("Retry-After"))
            return kind(call, said, status, wait)
        if kind is HarperUnauthorized:
            missing = tuple(self._login.quote(right) for right in missing_rights(error))
            return HarperUnauthorized(call, f"{said} (for {self._login.who})", status, missing)
        return kind(call, said, status)


def _is_garbled(response: requests.Response) -> bool:
    """Says whether a 200 is empty or cut short, as from a Harper that is ending and may return.

    Its first and last characters are enough: an answer that was cut short lacks its end.
    """
    if response.status_code != 200:
        return False
    body = response.content.strip()
    return not body or (body[:1] in _JSON_ENDS and _JSON_ENDS[body[:1]] != body[-1:])


def _is_foreign(response: requests.Response) -> bool:
    """Says whether a 200 is no answer of any Harper, because another server has its address."""
    return response.status_code == 200 and response.content.strip()[:1] not in _JSON_ENDS


def _is_dropped(error: requests.RequestException) -> bool:
    if isinstance(error, requests.Timeout | requests.exceptions.SSLError):
        return False
    return isinstance(error, requests.ConnectionError) and not _is_silence(error)


def _is_silence(error: requests.RequestException) -> bool:
    """Says whether it was a timeout; inside an answer, requests calls it a ConnectionError."""
    inner = error.args[0] if error.args else None
    return isinstance(error, requests.ReadTimeout) or isinstance(inner, ReadTimeoutError)


def _no_answer(
    request: Request, error: requests.RequestException, *, was_sent: bool
) -> HarperError:
    call, (connect_s, read_s) = request.call, request.timeout
    if isinstance(error, requests.exceptions.SSLError) and "CERTIFICATE_VERIFY" in str(error):
        return HarperUnsafe(call, "has a certificate that is not trusted")
    if isinstance(error, requests.ConnectTimeout):
        return HarperUnavailable(call, f"could not be reached within {connect_s:g} s")
    if _is_silence(error):
        return HarperUnavailable(call, f"gave no answer within {read_s:g} s")
    if not was_sent:
        return HarperUnavailable(call, "does not accept connections")
    return HarperUnavailable(call, "closed the connection without an answer")

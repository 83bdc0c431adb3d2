"""Waits speak: after five seconds, in the same words to everybody, and not too often."""

import threading
from datetime import UTC, datetime, timedelta

import pytest

from bq_harper_assets.retries import waiting
from bq_harper_assets.retries.waiting import TERMINAL, WAITS, Waits, clock_text


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def waits(clock: Clock) -> Waits:
    return Waits(clock)


def test_a_wait_is_told_after_5_s_and_again_every_30_s(waits: Waits, clock: Clock) -> None:
    terminal, log = list[str](), list[str]()
    with (
        waits.listen(terminal.append),
        waits.listen(log.append),
        waits.waiting("the lease of orders", "asks every second"),
    ):
        counts = []
        for now in (104.9, 105.0, 134.9, 135.0, 165.0):
            clock.now = now
            waits.look()
            counts.append(len(terminal))
    assert counts == [0, 1, 1, 2, 3]
    assert terminal == log
    assert terminal[0].startswith("waits for the lease of orders, since ")
    assert terminal[0].endswith(" UTC; asks every second")


def test_a_wait_that_has_ended_is_not_told(waits: Waits, clock: Clock) -> None:
    heard: list[str] = []
    with waits.listen(heard.append):
        with waits.waiting("x", "y"):
            pass
        clock.now += 60
        waits.look()
    assert heard == []


def test_one_that_began_before_is_told_with_its_beginning(waits: Waits) -> None:
    heard: list[str] = []
    with waits.listen(heard.append), waits.waiting("x", "y", since_s=7.0):
        waits.look()
    assert len(heard) == 1


def test_a_lease_is_told_at_once_by_whoever_waits(waits: Waits) -> None:
    heard: list[str] = []
    with waits.listen(heard.append), waits.waiting("x", "y", at_once=True):
        assert len(heard) == 1


def test_the_same_wait_of_many_threads_is_told_once(waits: Waits, clock: Clock) -> None:
    heard: list[str] = []
    with waits.listen(heard.append), waits.waiting("x", "y"), waits.waiting("x", "y"):
        clock.now += 6
        waits.look()
    assert len(heard) == 1


def test_a_listener_that_fails_stops_nobody(waits: Waits) -> None:
    heard: list[str] = []

    def full(line: str) -> None:
        raise OSError("no space left on device")

    with waits.listen(full), waits.listen(heard.append), waits.waiting("x", "y", at_once=True):
        assert len(heard) == 1


def test_a_wait_may_word_itself_anew_each_time(waits: Waits, clock: Clock) -> None:
    heard: list[str] = []
    with waits.listen(heard.append), waits.told_by(lambda now: f"{now:g}" if now > 110 else None):
        for now in (110.0, 111.0, 141.0):
            clock.now = now
            waits.look()
    assert heard == ["111", "141"]


def test_a_wait_that_cannot_be_worded_silences_no_other(waits: Waits) -> None:
    heard: list[str] = []

    def broken(now: float) -> str:
        raise KeyError("holder")

    with waits.listen(heard.append), waits.told_by(broken), waits.waiting("x", "y", since_s=7.0):
        waits.look()
    assert len(heard) == 1


def test_of_two_that_speak_at_one_place_the_newest_is_told(waits: Waits) -> None:
    whole_command, bar, log = list[str](), list[str](), list[str]()
    with waits.listen(whole_command.append, TERMINAL), waits.listen(log.append):
        waits.tell("1")
        with waits.listen(bar.append, TERMINAL):
            waits.tell("2")
        waits.tell("3")
    assert (whole_command, bar, log) == (["1", "3"], ["2"], ["1", "2", "3"])


def test_what_is_waited_for_may_be_worded_anew(waits: Waits, clock: Clock) -> None:
    heard: list[str] = []
    with waits.listen(heard.append), waits.waiting(lambda: f"{clock.now:g}", "y", at_once=True):
        clock.now += 30
        waits.look()
    assert [line.split(",")[0] for line in heard] == ["waits for 100", "waits for 130"]


def test_the_board_of_the_process_is_watched_while_someone_listens() -> None:
    heard = threading.Event()
    with (
        WAITS.listen(lambda line: heard.set() if "test of the board" in line else None),
        WAITS.waiting("the test of the board", "nothing", since_s=6.0),
    ):
        assert heard.wait(20)


def test_a_wait_says_since_when_it_lasts(waits: Waits) -> None:
    heard: list[str] = []
    before = datetime.now(UTC)
    with waits.listen(heard.append), waits.waiting("x", "y", since_s=3_600.0):
        waits.look()
    after = datetime.now(UTC)
    since = heard[0].removeprefix("waits for x, since ").partition(" ")[0]
    hour = timedelta(hours=1)
    assert since in {f"{before - hour:%H:%M:%S}", f"{after - hour:%H:%M:%S}"}


def test_a_time_of_day_to_come_is_told_in_utc() -> None:
    before = datetime.now(UTC)
    told = clock_text(3_600.0)
    after = datetime.now(UTC)
    hour = timedelta(hours=1)
    assert told in {f"{before + hour:%H:%M:%S} UTC", f"{after + hour:%H:%M:%S} UTC"}


def test_waits_that_begin_after_others_have_ended_are_told_all(waits: Waits, clock: Clock) -> None:
    heard: list[str] = []
    with waits.listen(heard.append), waits.waiting("1", "y"):
        with waits.waiting("2", "y"):
            pass
        with waits.waiting("3", "y"), waits.waiting("4", "y"):
            clock.now += 6
            waits.look()
    assert [line.partition(",")[0] for line in heard] == [f"waits for {n}" for n in (1, 3, 4)]


def test_a_board_is_watched_anew_for_whoever_listens_after_all_others_have_left(
    waits: Waits, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting, "LOOK_EVERY_S", 0.01)
    for _ in range(2):
        heard, first = threading.Event(), threading.Event()
        with waits.listen(lambda line, event=heard: event.set()):  # type: ignore[misc]
            with waits.listen(lambda line, event=first: event.set()):  # type: ignore[misc]
                pass
            with waits.waiting("x", "y", since_s=6.0):
                assert heard.wait(5)
        assert not first.is_set()

"""What hypothesis draws: a history as steps, so that one that fails is cut down to a few."""

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass

from hypothesis import HealthCheck, Phase, assume, given, seed, settings
from hypothesis import strategies as st

from bq_harper_assets.sync.protocols import DeletePolicy
from bq_harper_assets_tests.history.stage import STOPS

_OFTEN = {"go": 18, "change": 12, "start": 4, "race": 3, "poll": 2, "loss": 2}
_OFTEN |= {"kill": 1, "stall": 1}
_STEP = re.compile(r"([a-z]+)(\d+)(!?)")
# Lists are short on average, and shrink to nothing one by one.
_CHAPTERS, _LONGEST_CHAPTER = 7, 20


@dataclass(frozen=True)
class Setting:
    """The table of a history."""

    keyed: bool
    slices: int
    deletes: DeletePolicy

    def __str__(self) -> str:
        kind = "keyed" if self.keyed else "keyless"
        return f"{kind}, slices: {self.slices}, deletes: {self.deletes}"


SETTINGS = (
    Setting(True, 2, "mirror"),
    Setting(True, 1, "mirror"),
    Setting(False, 2, "mirror"),
    Setting(True, 1, "flag"),
    Setting(True, 1, "mirror"),
    Setting(False, 1, "flag"),
    Setting(True, 2, "keep"),
    Setting(True, 1, "mirror"),
    Setting(False, 2, "keep"),
)


# Those of directed tests, by the names of their fixtures.
WORLDS = {
    "keyed": Setting(True, 1, "mirror"),
    "keyless": Setting(False, 1, "mirror"),
    "sliced": Setting(True, 2, "mirror"),
    "flagging": Setting(True, 1, "flag"),
    "keeping": Setting(True, 1, "keep"),
    "keyless_sliced": Setting(False, 2, "mirror"),
}


@dataclass(frozen=True)
class Step:
    """Something happens: `chance` seeds all that is left open, such as which row or which run.

    But for a kill: there it counts in STOPS, and the next run to come to that stop is killed.
    """

    act: str
    chance: int
    is_faulty: bool = False  # meanwhile requests get lost, tasks die and the ledger is slow

    def __str__(self) -> str:
        return f"{self.act}{self.chance}{'!' * self.is_faulty}"

    @classmethod
    def parse(cls, text: str) -> "Step":
        """What str() told."""
        if (found := _STEP.fullmatch(text)) is None or found[1] not in _OFTEN:
            raise ValueError(f"{text!r} is no step of a history; they look like go17 or change4!")
        return cls(found[1], int(found[2]), bool(found[3]))


@dataclass(frozen=True, repr=False)
class Script:
    """A whole history: its number says on which table."""

    number: int
    steps: tuple[Step, ...]

    @property
    def setting(self) -> Setting:
        """The table."""
        return SETTINGS[self.number % len(SETTINGS)]

    @property
    def is_busy(self) -> bool:
        """Whether requests get lost more often, and runs stall for longer."""
        return self.number % 2 == 1

    def __str__(self) -> str:
        return f"{self.number}: {' '.join(map(str, self.steps))}"

    def __repr__(self) -> str:
        return f"Script.parse({str(self)!r})"

    @classmethod
    def parse(cls, text: str) -> "Script":
        """What str() told."""
        number, _, steps = text.partition(":")
        return cls(int(number), tuple(Step.parse(step) for step in steps.split()))


def stops_of(number: int) -> tuple[str, ...]:
    """Where a history kills; one per table has them all, and each table has others in turn."""
    turn, table = divmod(number, len(SETTINGS))
    return STOPS[(table + turn) % len(SETTINGS) :: len(SETTINGS)]


@st.composite
def steps(draw: st.DrawFn, kill_at: Collection[str]) -> tuple[Step, ...]:
    """About thirty-five after the kills; the simplest script has none, and is left out."""
    acts = st.sampled_from([act for act, often in _OFTEN.items() for _ in range(often)])
    step = st.builds(Step, acts, st.integers(0, 9_999), st.booleans())
    chapters = [draw(st.lists(step, max_size=_LONGEST_CHAPTER)) for _ in range(_CHAPTERS)]
    # Nearly all of them are drawn, and only those that matter are left in a shorter script.
    kills = [Step("kill", STOPS.index(stop)) for stop in kill_at if draw(st.integers(0, 99))]
    found = (*kills, *(step for chapter in chapters for step in chapter))
    assume(found)
    return found


def check_script(
    number: int,
    check: Callable[[Script], None],
    *,
    kill_at: Collection[str] | None = None,
    shrinks: bool = True,
) -> None:
    """Draws the script of that number, always the same; if it fails, also ever shorter ones."""
    phases = (Phase.generate, Phase.shrink) if shrinks else (Phase.generate,)
    kill_at = stops_of(number) if kill_at is None else kill_at

    @seed(number)
    @settings(
        max_examples=1,
        phases=phases,
        deadline=None,
        database=None,
        derandomize=False,
        suppress_health_check=list(HealthCheck),
    )
    @given(steps(kill_at).map(lambda some: Script(number, some)))
    def checked(script: Script) -> None:
        check(script)

    checked()


def drawn(number: int) -> Script:
    """The script of that number."""
    found: list[Script] = []
    check_script(number, found.append, shrinks=False)
    return found[-1]

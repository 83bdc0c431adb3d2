"""What hypothesis draws: a history as steps, so that one that fails is cut down to a few."""

import re
from collections.abc import Callable
from dataclasses import dataclass

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from bq_harper_assets.sync.removal import DeletePolicy

# Where a run can be killed; a history kills the first that comes to each of two its number names.
STOPS = (
    *("begin", "before acquire", "after acquire", "before record_schema", "before plan"),
    *("after plan", "read", "job", "before mark", "after mark", "answer", "wait"),
    *("before commit_cells", "after commit_cells", "before refuse_batch", "before fail_batch"),
    *("before intend_deletes", "after intend_deletes", "before release"),
)
_OFTEN = {"go": 18, "change": 12, "start": 4, "race": 3, "poll": 3, "kill": 1, "stall": 1}
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
    """Something happens: `chance` seeds all that is left open, such as which row or which run."""

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
    """A whole history: its number says on which table, and which stops kill a run."""

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

    @property
    def kill_at(self) -> set[str]:
        """Two of the stops."""
        return {STOPS[(2 * self.number + n) % len(STOPS)] for n in (0, 1)}

    def __str__(self) -> str:
        return f"{self.number}: {' '.join(map(str, self.steps))}"

    def __repr__(self) -> str:
        return f"Script.parse({str(self)!r})"

    @classmethod
    def parse(cls, text: str) -> "Script":
        """What str() told."""
        number, _, steps = text.partition(":")
        return cls(int(number), tuple(Step.parse(step) for step in steps.split()))


def scripts(number: int) -> st.SearchStrategy[Script]:
    """Of about thirty-five steps; the simplest has none, and is left out."""
    acts = st.sampled_from([act for act, often in _OFTEN.items() for _ in range(often)])
    step = st.builds(Step, acts, st.integers(0, 9_999), st.booleans())
    chapters = st.tuples(*[st.lists(step, max_size=_LONGEST_CHAPTER)] * _CHAPTERS)
    steps = chapters.map(lambda parts: tuple(step for part in parts for step in part))
    return steps.filter(bool).map(lambda some: Script(number, some))


def check_script(number: int, check: Callable[[Script], None], *, shrinks: bool = True) -> None:
    """Draws the script of that number, always the same; if it fails, also ever shorter ones."""
    phases = (Phase.generate, Phase.shrink) if shrinks else (Phase.generate,)

    @seed(number)
    @settings(
        max_examples=1,
        phases=phases,
        deadline=None,
        database=None,
        derandomize=False,
        suppress_health_check=list(HealthCheck),
    )
    @given(scripts(number))
    def checked(script: Script) -> None:
        check(script)

    checked()


def drawn(number: int) -> Script:
    """The script of that number."""
    found: list[Script] = []
    check_script(number, found.append, shrinks=False)
    return found[-1]

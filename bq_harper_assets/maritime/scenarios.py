"""Says how much sample data there is: three named sizes, and others derived from them."""

from dataclasses import dataclass

from bq_harper_assets.maritime.itinerary import SECOND

HOUR = 3600 * SECOND


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """A scenario is a size of the sample data.

    The positions cover `span` microseconds, and the events are the newest at its end.
    """

    name: str
    positions: int
    events: int
    vessels: int
    span: int


SCENARIOS = {
    scenario.name: scenario
    for scenario in (
        Scenario(name="small", positions=100, events=10, vessels=20, span=HOUR),
        Scenario(name="realistic", positions=10_000, events=500, vessels=100, span=24 * HOUR),
        Scenario(name="stress", positions=100_000, events=5_000, vessels=1_000, span=7 * 24 * HOUR),
    )
}


def sized(scenario: Scenario, rows: int | None = None, vessels: int | None = None) -> Scenario:
    """Returns the scenario with other positions (the rest in proportion) or another fleet size."""
    if rows is not None:
        fleet = max(scenario.vessels, rows // 100)
        scenario = Scenario(
            name=scenario.name, positions=rows, events=rows // 20, vessels=fleet, span=scenario.span
        )
    if vessels is not None:
        scenario = Scenario(
            name=scenario.name,
            positions=scenario.positions,
            events=scenario.events,
            vessels=vessels,
            span=scenario.span,
        )
    return scenario

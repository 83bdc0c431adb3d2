"""How much sample data: three named sizes, and anything beyond."""

from dataclasses import dataclass

from bq_harper_assets.maritime.itinerary import SECOND

HOUR = 3600 * SECOND


@dataclass(frozen=True)
class Scenario:
    """`span` (microseconds) is what the positions cover; the events are the newest at its end."""

    name: str
    positions: int
    events: int
    vessels: int
    span: int


SCENARIOS = {
    scenario.name: scenario
    for scenario in (
        Scenario("small", 100, 10, 20, HOUR),
        Scenario("realistic", 10_000, 500, 100, 24 * HOUR),
        Scenario("stress", 100_000, 5_000, 1_000, 7 * 24 * HOUR),
    )
}


def sized(scenario: Scenario, rows: int | None = None, vessels: int | None = None) -> Scenario:
    """The scenario with another number of positions (the rest in proportion) or of vessels."""
    if rows is not None:
        fleet = max(scenario.vessels, rows // 100)
        scenario = Scenario(scenario.name, rows, rows // 20, fleet, scenario.span)
    if vessels is not None:
        scenario = Scenario(
            scenario.name, scenario.positions, scenario.events, vessels, scenario.span
        )
    return scenario

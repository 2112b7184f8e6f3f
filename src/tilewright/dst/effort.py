"""How hard the searches try: every tuning constant of the library, with its reason.

Work is counted in states and successors looked at, not timed, so that no plan depends on the machine; a usual machine looks at
about forty in a millisecond. The figures are what `benchmarks/dst_quality.py` and bodies of 6 to 60 random ops need: half of them
costs a few percent of the cycles somewhere, twice as much gains nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

SIZE_LIMIT = 64  # ops; above it the list schedules come first, and no more than a beam beside them
BEAM_LIMIT = 300  # ops; masks of more bits make every state slow
ROW_LIMIT = 3_000  # rows of the relaxed problem; a body with more has too many states for A* too
STEP_LIMIT = 5_000  # steps from one row to another: in wide bodies each row has many, and there this limit comes first
SPLIT_EXACT_LIMIT = 24  # ops; cuts may come anywhere, so larger bodies are cut by the beam
CLOSE_ESTIMATE = 1.05  # a set of round trips whose estimate is further above the best one's is not searched
LITTLE = 0.01  # share of a tile's cycles: a body without a relaxed bound is not searched again to spare less
FEW_TILES = 2  # tiles per acquire up to which sharing slots among tiles may pay; the search proves op-major only


@dataclass(frozen=True, kw_only=True)
class Effort:
    """Of one region."""

    exact: int  # A* with the relaxed bound, for all slot budgets together: it mostly walks straight to the answer
    least_exact: int  # of which each budget has at least so much
    uninformed: int  # A* where the relaxed problem is too large or does not apply: only small bodies end
    fit: int  # a depth-first walk to any sequence that fits, where the relaxed bound does not know whether one does
    beam: int  # what A* leaves open
    beam_width: int


WHOLE = Effort(exact=20_000, least_exact=400, uninformed=1_500, fit=6_000, beam=10_000, beam_width=24)
LARGE = Effort(exact=4_000, least_exact=400, uninformed=0, fit=20_000, beam=30_000, beam_width=24)  # above SIZE_LIMIT
PROOF = Effort(exact=6_000_000, least_exact=400, uninformed=6_000_000, fit=6_000, beam=5_000, beam_width=24)  # on request
AGAIN = Effort(exact=0, least_exact=0, uninformed=4_000, fit=0, beam=5_000, beam_width=4)  # recomputing: many more successors
PART = Effort(exact=10_000, least_exact=400, uninformed=1_000, fit=4_000, beam=3_000, beam_width=24)  # of a split
TRIP = Effort(exact=800, least_exact=60, uninformed=200, fit=4_000, beam=120, beam_width=24)  # of a round trip: many are tried
SPLIT = Effort(exact=0, least_exact=0, uninformed=20_000, fit=0, beam=40_000, beam_width=16)  # the cuts themselves

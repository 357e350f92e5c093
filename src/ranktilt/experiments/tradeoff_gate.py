"""A gate on a bench: whether some intervention reaches level within the budget."""

from __future__ import annotations

from ranktilt.auditing.answer.gate import POLICIES, Gate
from ranktilt.errors import UserError, unknown
from ranktilt.experiments.tradeoff_result import Bench
from ranktilt.measures.margin import Margin


def gate_bench(
    bench: Bench, *, max_tilt: Margin | None = None, budget: float | None = None, inconclusive: str = "fail"
) -> Gate:
    """Pass or fail a bench by its choice: `Bench.choose`.

    Parameters
    ----------
    bench : Bench
        Of interventions.
    max_tilt : float, optional
        Half-width, in percent, of what counts as level; the bench's own by default.
    budget : float, optional
        Effectiveness that an intervention may cost, 0 to 1; the bench's own by default.
    inconclusive : {"fail", "pass"}, optional
        Exit code of an inconclusive outcome: 3 or 0.

    Returns
    -------
    Gate
        Its rows are those of the chosen intervention; without one, of those that are open, or of all.

    Raises
    ------
    UserError
        If a limit is out of range.
    """
    if inconclusive not in POLICIES:
        raise unknown("policy for inconclusive", inconclusive, POLICIES)
    if isinstance(max_tilt, str):
        raise UserError(f"--max-tilt {max_tilt}: a bench is judged in points of percent")
    choice = bench.choose(level=max_tilt, budget=budget)
    spec = {
        "max_tilt": choice.level,
        "budget": choice.budget,
        "effectiveness": bench.valued,
        "baseline": False,
        "min_effect": 0.0,
        "inconclusive": inconclusive,
        "audit": bench.spec.get("command"),
    }
    return Gate(spec, choice.decisive, (choice.headline, *choice.sentences, *bench.notes))

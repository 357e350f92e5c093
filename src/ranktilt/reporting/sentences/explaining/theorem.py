"""The theorem on easier rewrites in words: which of its conditions hold, and what follows.

Theorem 4.1 of Dai et al. (KDD 2024) says under which conditions rewrites are easier to predict for
a retriever's language model than their originals, that is, have fewer nats per token.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ranktilt.data.notes.probes import TheoremChecked
from ranktilt.errors import counted, join_words

CONDITION_WORDS: Mapping[str, str] = {
    "semantic superiority": "semantic superiority",
    "conditional redundancy": "conditional redundancy",
    "divergence, share of positions": "divergence everywhere",
    "divergence, mean margin": "divergence on average",
    "conclusion": "conclusion",
}
"""Name of each condition in a figure, by its column, and of the conclusion."""
EVERYWHERE = "divergence, share of positions"
"""The condition whose value is a share of positions; all others are in nats."""
CONCLUSION = "conclusion"
"""The row of the conclusion, which holds below 0; conditions hold above."""


def theorem_findings(notes: Sequence[object]) -> tuple[TheoremChecked, ...]:
    """Return the findings about the theorem among the findings of probes."""
    return tuple(note for note in notes if isinstance(note, TheoremChecked))


def sources_sentence(findings: Sequence[TheoremChecked]) -> str:
    """Say of several sources whose texts are easier to predict, and where the theorem applies."""
    comparatives = {"yes": "easier", "no": "harder", "undecided": "neither easier nor harder"}
    clauses = []
    for conclusion, comparative in comparatives.items():
        names = [finding.source for finding in findings if finding.conclusion == conclusion]
        if names:
            clauses.append(f"{join_words(names)} texts {comparative}")
    applies = sum(map(_applies, findings))
    return (
        f"The retriever's model finds {join_words(clauses)} to predict than their originals; "
        f"theorem 4.1 applies to {applies} of {len(findings)} sources."
    )


def _applies(finding: TheoremChecked) -> bool:
    """Return whether every condition was checked and holds."""
    return finding.is_complete and not finding.failed and not finding.undecided


def theorem_meaning(findings: Sequence[TheoremChecked]) -> str:
    """Say whether the theorem predicts a tilt, and that only an audit shows one."""
    failing = [finding for finding in findings if finding.failed]
    audit_hint = "Only an audit shows whom your ranker favours."
    if all(map(_applies, findings)):
        return (
            "The conditions hold under which rewrites are easier to predict for a retriever's "
            f"model. A ranker that responds to that may favour them. {audit_hint}"
        )
    if failing:
        sources = ""
        if len(findings) > 1:
            sources = f" for {len(failing)} of {counted(len(findings), 'source', 'sources')}"
        return (
            f"The theorem makes no prediction{sources}, as its conditions do not hold. {audit_hint}"
        )
    return f"Whether the theorem applies here stays open. {audit_hint}"

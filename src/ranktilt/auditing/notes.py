"""What a reader of an audit should know beside its numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ranktilt.auditing.evaluate import Aligned, Judgments
from ranktilt.auditing.groups import ALL, Groups, Pair
from ranktilt.auditing.tilt import Tilt
from ranktilt.errors import counted

FEW_QUERIES = 30


def run_notes(one: Aligned, documents: int) -> Iterator[str]:
    """Say what a run lacks and what it holds beyond a collection of so many documents."""
    name, spec = one.run.name, one.run.spec
    missing = one.missing or int(spec.get("judged_queries_missing", 0))
    if missing:
        yield f"{name}: {counted(missing, 'judged query', 'judged queries')} not in the run, counted as 0"
    beyond = (one.row < 0) | (one.row >= documents)
    if beyond.any():
        strange = one.run.ids.gather(one.run.docs[one.entry[beyond]])
        yield (
            f"{name}: {counted(len(strange), 'entry', 'entries')} of "
            f"{counted(strange.n_unique(), 'document', 'documents')} not in the collection (first: {strange[0]!r}); "
            "these keep their ranks and belong to no group"
        )
    own = int(spec.get("own_documents_dropped", 0))
    if own:
        chance = "; their texts differ, as where ids coincide by chance" if spec.get("own_documents_differ") else ""
        yield f"{name}: own documents of {counted(own, 'query', 'queries')} left out{chance} (--no-exclude-self)"


def judgment_notes(judgments: Judgments, documents: int) -> Iterator[str]:
    """Say how many judgments name what the collection does not hold."""
    pairs = int((judgments.row >= documents).sum())
    queries = int((~judgments.known_query).sum())
    if pairs or queries:
        yield (
            f"relevance judgments of unknown documents ({pairs}) and of unknown queries ({queries}) count in the row "
            f"{ALL!r} and in no group"
        )


def group_notes(groups: Groups, left_out: Sequence[Pair], tilts: Sequence[Tilt], resamples: int) -> Iterator[str]:
    """Say what the comparison of groups leaves out, and where it stands on little."""
    if groups.unlabelled:
        without = counted(groups.unlabelled, "document", "documents")
        yield f"{without} without {groups.by}, in no group"
    for a, b in left_out:
        yield f"{a} and {b} are not compared: one of them has no relevant document"
    first = {(t.a, t.b): t for t in reversed(tilts)}
    for pair in dict.fromkeys((t.a, t.b) for t in tilts):
        tilt = first[pair]
        if tilt.excluded:
            total = tilt.queries + tilt.excluded
            yield (
                f"{tilt.excluded} of {counted(total, 'query', 'queries')} excluded: no relevant document of both "
                f"{tilt.a} and {tilt.b}"
            )
        if tilt.queries < FEW_QUERIES:
            yield (
                f"warning: only {counted(tilt.queries, 'query compares', 'queries compare')} {tilt.a} and {tilt.b}; "
                f"intervals from fewer than {FEW_QUERIES} are too narrow to rely on"
            )
        dropped = max(t.dropped for t in tilts if (t.a, t.b) == pair)
        if dropped:
            yield f"up to {dropped:,} of {resamples:,} resamples dropped for {tilt.a} and {tilt.b}: both sides were 0"

"""What a reader of an audit should know beside its numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ranktilt.auditing.evaluate import Aligned, Judgments
from ranktilt.auditing.groups import ALL, Groups, Pair
from ranktilt.auditing.tilt import FEW_QUERIES, Tilt
from ranktilt.collection import Collection
from ranktilt.errors import counted


def run_notes(one: Aligned, collection: Collection, missing: str = "zero") -> Iterator[str]:
    """Say what a run lacks and what it holds beyond a collection's documents."""
    name, spec = one.run.name, one.run.spec
    if one.missing:
        noun = ("judged query", "judged queries") if len(one.judgments.grade) else ("query", "queries")
        how = "" if not len(one.judgments.grade) else ", counted as 0" if missing == "zero" else ", not counted"
        yield f"{name}: {counted(one.missing, *noun)} not in the run{how}"
    beyond = (one.row < 0) | (one.row >= collection.docs.height)
    if beyond.any():
        strange = one.run.ids.gather(one.run.docs[one.entry[beyond]])
        yield (
            f"{name}: {counted(len(strange), 'entry', 'entries')} of "
            f"{counted(strange.n_unique(), 'document', 'documents')} {lacking(collection)} (first: {strange[0]!r}); "
            "these keep their ranks and belong to no group"
        )
    own = int(spec.get("own_documents_dropped", 0))
    if own:
        chance = "; their texts differ, as where ids coincide by chance" if spec.get("own_documents_differ") else ""
        yield f"{name}: own documents of {counted(own, 'query', 'queries')} left out{chance} (--no-exclude-self)"


def lacking(collection: Collection) -> str:
    """Say of a document that it is not there: in a collection, or among the labels that stand for one."""
    return (
        "without a label" if "labels" in collection.spec and "path" not in collection.spec else "not in the collection"
    )


def judgment_notes(judgments: Judgments, documents: int) -> Iterator[str]:
    """Say how many judgments name what the collection does not hold."""
    pairs = int((judgments.row >= documents).sum())
    queries = int((~judgments.known_query).sum())
    if pairs or queries:
        yield (
            f"relevance judgments of unknown documents ({pairs}) and of unknown queries ({queries}) count in the row "
            f"{ALL!r} and in no group"
        )


def group_notes(
    groups: Groups, left_out: Sequence[Pair], tilts: Sequence[Tilt], resamples: int, *, absent: bool = False
) -> Iterator[str]:
    """Say what the comparison of groups leaves out, and where it stands on little.

    `absent` says that queries which a run lacks are left out too.
    """
    if groups.unlabelled:
        without = counted(groups.unlabelled, "document", "documents")
        yield f"{without} without {groups.by}, in no group"
    for a, b in left_out:
        yield f"{a} and {b} have no Relative Δ: one of them has no relevant document"
    first = {(t.a, t.b): t for t in reversed(tilts)}
    for pair in dict.fromkeys((t.a, t.b) for t in tilts):
        tilt = first[pair]
        if tilt.excluded:
            total = tilt.queries + tilt.excluded
            yield (
                f"{tilt.excluded} of {counted(total, 'query', 'queries')} excluded: no relevant document of both "
                f"{tilt.a} and {tilt.b}{', or not in the run' if absent else ''}"
            )
        if tilt.queries < FEW_QUERIES:
            yield (
                f"warning: only {counted(tilt.queries, 'query compares', 'queries compare')} {tilt.a} and {tilt.b}; "
                f"intervals from fewer than {FEW_QUERIES} are too narrow to rely on"
            )
        dropped = max(t.dropped for t in tilts if (t.a, t.b) == pair)
        if dropped:
            yield f"up to {dropped:,} of {resamples:,} resamples dropped for {tilt.a} and {tilt.b}: both sides were 0"

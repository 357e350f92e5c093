"""Why a ranker may favour a source: what probes find in its texts, in one result."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any

from ranktilt._version import __version__
from ranktilt.collection import Collection
from ranktilt.errors import UserError, unknown
from ranktilt.io.artifact import Result
from ranktilt.probes.base import Probe, ProbeResult, others, reference_of
from ranktilt.progress import report
from ranktilt.rankers.base import Ranker

PROBES = {
    "statistics": "ranktilt.probes.statistics:StatisticsProbe",
    "overlap": "ranktilt.probes.overlap:OverlapProbe",
    "similarity": "ranktilt.probes.similarity:SimilarityProbe",
}
ENTRY_POINTS = "ranktilt.probes"


@dataclass(frozen=True, eq=False)
class Explanation(
    Result, format="ranktilt-explanation", version=1, noun="an explanation", command="ranktilt explain"
):  # fmt: skip
    """What `explain` found; immutable.

    Parameters
    ----------
    spec : mapping
        How it was made: collection, ranker, versions.
    reference : str
        The source that each of the others is held against.
    sources : tuple of str
        The others.
    results : tuple of ProbeResult
        One a probe, in the order asked for.
    notes : tuple of str
        What was left out, and why.
    """

    spec: Mapping[str, Any]
    reference: str
    sources: tuple[str, ...]
    results: tuple[ProbeResult, ...]
    notes: tuple[str, ...] = ()


def explain(
    collection: Collection,
    probes: Sequence[str | Probe[Any]] | None = None,
    ranker: Ranker | None = None,
    *,
    reference: str | None = None,
) -> Explanation:
    """Look at the texts of a collection with probes: what differs between twins, and by how much.

    Parameters
    ----------
    collection : Collection
        With two sources or more, whose documents are twins by ``origin``.
    probes : sequence of str or Probe, optional
        ``"statistics"``, ``"overlap"``, ``"similarity"``, those of installed packages, or probes themselves. By
        default all of RankTilt's own that can run.
    ranker : Ranker, optional
        Whose view is asked for; ``similarity`` needs one with an encoder, such as ``ranker("dense:minilm")``.
    reference : str, optional
        The source that each of the others is held against: ``"human"`` where there is one, or else the first.

    Returns
    -------
    Explanation
        A `ProbeResult` for each probe: rows with a ``source``, Hedges' g on twins with its 95 % interval, figures as
        data, and a sentence. That twins differ in a property does not show that a ranker goes by it.

    Raises
    ------
    UserError
        If a probe is unknown or named twice, cannot use the ranker, or the reference is no source.
    """
    first = reference_of(collection, reference, to="explain")
    chosen = [probe(one) for one in (PROBES if probes is None else probes)]
    notes = []
    if probes is None and ranker is None:
        notes = [f"{one.name} is left out: it needs an encoder, such as -r dense:minilm" for one in chosen
                 if one.needs_encoder]  # fmt: skip
        chosen = [one for one in chosen if not one.needs_encoder]
    names = [one.name for one in chosen]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise UserError(f"probe {twice!r} is given twice")
    spec = {
        **{name: collection.spec[name] for name in ("path", "split") if name in collection.spec},
        "probes": names,
        "ranker": None if ranker is None else repr(ranker),
        "ranktilt": __version__,
    }
    results = tuple(_each(chosen, collection, ranker, first))
    return Explanation(spec, first, tuple(others(collection, first)), results, tuple(notes))


def _each(
    probes: Sequence[Probe[Any]], collection: Collection, ranker: Ranker | None, reference: str
) -> Iterator[ProbeResult]:
    for number, one in enumerate(probes):
        report("probing texts", number, len(probes))
        yield one(collection, ranker, reference=reference)
    report("probing texts", len(probes), len(probes))


def probe_names() -> list[str]:
    """Return the names of all probes: ours, and those of installed packages (entry points ``ranktilt.probes``)."""
    return [*PROBES, *sorted({one.name for one in entry_points(group=ENTRY_POINTS)} - set(PROBES))]


def probe(name: str | Probe[Any]) -> Probe[Any]:
    """Return the probe of a name: one of ours, or one that a package announces; a probe comes back as it is."""
    if isinstance(name, Probe):
        return name
    if name in PROBES:
        module, _, attribute = PROBES[name].partition(":")
        kind = getattr(import_module(module), attribute)
    else:
        found = [one for one in entry_points(group=ENTRY_POINTS) if one.name == name]
        if not found:
            raise unknown("probe", name, probe_names())
        try:
            kind = found[0].load()
        except Exception as error:  # a package of someone else's may fail to import in any way
            raise UserError(f"probe {name!r} ({found[0].value}) cannot be imported: {error}") from error
    if not (isinstance(kind, type) and issubclass(kind, Probe)):
        raise UserError(f"probe {name!r}: expected a subclass of ranktilt's Probe, got {kind!r}")
    made: Probe[Any] = kind()
    return made

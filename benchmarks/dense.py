"""Documents a second of ``dense:minilm`` beside sentence-transformers' default ``encode`` on the same texts.

Both run on this machine's processor or accelerator as torch finds it. The model is loaded and warmed up on a few
texts before the clock starts; RankTilt's cache lies in an empty temporary folder, and writing to it is timed.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

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
    publish,
    seconds,
    table,
)

PACKAGES = ("ranktilt", "torch", "transformers", "sentence-transformers", "tokenizers")
TEXTS = 600
WARM = ("one text to warm up", "and another one, so that both sides have run before the clock starts")


def sample(folder: Path, count: int) -> list[str]:
    """Real texts where they are there, evenly taken; generated ones otherwise."""
    import generate

    import ranktilt as rt

    data = nfcorpus()
    collection = rt.load(data) if data is not None else generate.collection(generate.QUICK)
    texts = collection.texts().unique(maintain_order=True)
    return texts.gather_every(max(len(texts) // count, 1)).head(count).to_list()


def prepare(folder: Path, given: argparse.Namespace) -> Measured:
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

    from ranktilt.rankers.encoder import encoder

    texts, watch = _texts(folder), Watch()
    with tempfile.TemporaryDirectory() as cache:
        os.environ["RANKTILT_CACHE"] = cache
        model = encoder("minilm", max_tokens=None, precision=precision, device=None)
        with watch("load"):
            model.encode(WARM, "document", "warming up")
        with watch("encode"):
            model.encode(texts, "document", "encoding")
    return {**watch.parts, "documents": len(texts), "low": float(model.precision == "bfloat16")}


def default(folder: Path, given: argparse.Namespace) -> Measured:
    """Encode with RankTilt at its default precision."""
    return ours(folder, "auto")


def float32(folder: Path, given: argparse.Namespace) -> Measured:
    """Encode with RankTilt at full precision."""
    return ours(folder, "float32")


def library(folder: Path, given: argparse.Namespace) -> Measured:
    """Encode with sentence-transformers' defaults."""
    from sentence_transformers import SentenceTransformer

    from ranktilt.rankers.encoder import encoder

    texts, watch = _texts(folder), Watch()
    place = encoder("minilm", max_tokens=None, precision="float32", device=None).folder
    with watch("load"):
        model = SentenceTransformer(str(place))
        model.encode(list(WARM))
    with watch("encode"):
        model.encode(texts)
    return {**watch.parts, "documents": len(texts), "low": 0.0}


CONTENDERS: dict[str, Contender] = {
    "prepare": prepare,
    "ranktilt": default,
    "ranktilt-float32": float32,
    "sentence-transformers": library,
}
LABELS = {
    "ranktilt": "dense:minilm (default precision: {})",
    "ranktilt-float32": "dense:minilm(precision=float32)",
    "sentence-transformers": "sentence-transformers, default encode (float32)",
}


def section(folder: Path, what: str, rounds: int) -> str:
    """Measure all and compare."""
    names: Sequence[str] = tuple(LABELS)
    found = alternating(__file__, names, folder, rounds)
    speed = {n: m["documents"] / m["encode"] for n, m in found.items()}
    peer = speed["sentence-transformers"]
    low = "bfloat16" if found["ranktilt"]["low"] else "float32"
    rows = [
        [LABELS[n].format(low), f"{speed[n]:.1f}", f"{speed[n] / peer:.2f}×", seconds(m["load"]), memory(m["peak"])]
        for n, m in found.items()
    ]
    header = ["contender", "documents a second", "ratio", "load and warm up (s)", "peak memory"]
    return "\n".join([f"### {what}, median of {rounds}", "", table(header, rows)])


def main() -> None:
    """Measure and write the section."""
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    parser = arguments(__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    if given.contender:
        compete(given, CONTENDERS)
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / ("quick" if given.quick else "texts")

        count = int(fresh(__file__, "prepare", folder)["texts"])
        origin = "texts of NFCorpus" if nfcorpus() is not None else "generated texts (NFCorpus is absent)"
        table_ = section(folder, f"{count} {origin}", 1 if given.quick else given.rounds)
    publish("dense", "\n\n".join(["## Dense encoding", machine(PACKAGES), table_]), given)


if __name__ == "__main__":
    main()

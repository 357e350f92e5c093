"""Dai et al., Neural Retrievers are Biased Towards LLM-Generated Content (KDD 2024).

The paper compares how high rankers put human texts and rewrites of them by language models.
`folder` reads its collections, and `nq320k` builds one of them (``data build nq320k``). `rankers`
has BM25 and TF-IDF as it uses them, `preset` its options, and `theorem` the probe of its theorem
4.1. `layouts` has its tables and figures, which `curves`, `figures` and `temperature` prepare.

May import every room but another paper. Tests: tests/papers/dai.
"""

EXTENSIONS = {
    "ranktilt.rankers": {
        "bm25:dai": "ranktilt.papers.dai.rankers:DaiBM25",
        "tfidf:dai": "ranktilt.papers.dai.rankers:DaiTFIDF",
    },
    "ranktilt.probes": {"theorem": "ranktilt.papers.dai.theorem:TheoremProbe"},
    "ranktilt.readers": {"dai": "ranktilt.papers.dai.folder:READER"},
    "ranktilt.builders": {"nq320k": "ranktilt.papers.dai.nq320k:nq320k"},
    "ranktilt.layouts": {"dai": "ranktilt.papers.dai.layouts:LAYOUTS"},
    "ranktilt.presets": {"dai": "ranktilt.papers.dai.preset:DAI"},
}
"""What the paper adds to RankTilt, as ``module:object`` by name, for each kind of object."""

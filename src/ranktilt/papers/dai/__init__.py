"""Dai et al., Neural Retrievers are Biased Towards LLM-Generated Content (KDD 2024)."""

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

"""Askari et al., A Test Collection of Synthetic Documents for Training Rankers (CIKM 2023).

The paper trains rankers on answers by people or by ChatGPT to the same questions, and compares
them. Start in `builder`, which is ``data build retrieval-qa``: `answered_questions` reads questions
with their answers, `retrieval_qa` makes a collection of them, `retrieval_qa_files` writes it with
BM25's runs, and `triples` with training triples. `layouts` has the paper's tables, and `preset` its
options.

May import every room but another paper. Tests: tests/papers/askari.
"""

EXTENSIONS = {
    "ranktilt.builders": {"retrieval-qa": "ranktilt.papers.askari.builder:retrieval_qa"},
    "ranktilt.layouts": {"askari": "ranktilt.papers.askari.layouts:LAYOUTS"},
    "ranktilt.presets": {
        "askari": "ranktilt.papers.askari.preset:ASKARI",
        "askari-notebook": "ranktilt.papers.askari.preset:ASKARI_NOTEBOOK",
    },
}
"""What the paper adds to RankTilt, as ``module:object`` by name, for each kind of object."""

"""The words of the trade that pages use, each with a definition for a colleague from another field."""

from __future__ import annotations

from ranktilt.measures.base import every_estimand
from ranktilt.reporting.glossary.statistics_terms import CERTAINTY
from ranktilt.reporting.glossary.term import Term

_PIPELINE = Term(
    "pipeline",
    "Two stages and more: the first ranker finds results, as many as the number behind its @ says, and the next "
    "puts these into a new order.",
    r"[\w.:()=,/-]+(?:@\d+)?(?:>>[\w.:()=,/@-]*[\w)])+|[Pp]ipelines?",
)
_QUESTIONS = (
    Term(
        "tilt",
        "How far a ranker leans to one side; measured by Relative Δ, above 0 to the first side, below 0 to the second.",
        r"[Tt]ilt(?:s|ed)?",
        "relative-delta",
    ),
    Term(
        "estimand card",
        "Five questions to one ranking, side by side: on which side the right answer is higher, who fills the page, "
        "which twin is above, by how many ranks, and by how much score. Their answers can differ.",
        r"[Ee]stimand cards?|[Tt]he card(?:'s)?",
    ),
    Term(
        "conflict",
        "Two answers conflict where their 95 % intervals lie on opposite sides of no preference.",
        r"[Cc]onflicts?",
    ),
    Term(
        "exposure",
        "How much of the readers' attention a group's documents can get: the top ranks count most.",
        r"[Ee]xposure",
        "ndsr",
    ),
    Term("measure", "A number for how good a list of results is, such as nDCG@10.", r"[Mm]easures?"),
    Term("effectiveness", "How well a ranker finds what is relevant, whoever wrote it.", r"[Ee]ffectiveness"),
)
_RANKING = (
    Term(
        "re-ranker",
        "A second stage, which puts the best results of a faster first one into a new order; “bm25@100>>…” hands 100 "
        "results to it.",
        r"[Rr]e-?rankers?",
    ),
    Term("ranker", "What puts documents in order for a query: a search engine, or a part of one.", r"[Rr]ankers?"),
    Term("run", "The lists of results that one ranker gave for all queries, with its scores.", r"[Rr]uns?"),
    Term(
        "score",
        "The number by which a ranker orders documents; each ranker has a scale of its own.",
        r"[Ss]cores?",
    ),
    Term("relevant", "Judged to answer the query, wholly or in part.", r"[Rr]elevant"),
    Term(
        "judgments",
        "Which documents answer which query, as was decided before anything was ranked, mostly by people; also called "
        "qrels.",
        r"[Jj]udge?ments?|[Jj]udged|qrels",
    ),
    Term("grade", "How well a document answers a query: 0 not at all; 1 and above are relevant.", r"[Gg]rades?"),
    Term("retrieved", "In the ranker's list for the query, however far down.", r"[Rr]etrieved"),
    Term("cutoff", "How many of the first results a measure looks at: ten in nDCG@10.", r"[Cc]utoffs?|@k"),
    Term("twin", "The two texts that belong together: an original and its rewrite.", r"[Tt]wins?"),
    Term(
        "rewrite",
        "A text that a language model made of an original one, told to keep what it says.",
        r"[Rr]ewrites?",
    ),
    Term("source", "Who wrote a document: people, or a certain language model.", r"[Ss]ources?"),
    Term(
        "group",
        "The documents that have one label in common, such as who wrote them, a language or a length.",
        r"[Gg]roups?",
    ),
    Term(
        "tied twins",
        "The share of relevant twins with exactly the same score, of those of which either was found. The ranker does "
        "not tell these apart; where it is large, few pairs decide the result.",
        r"[Tt]ied twins",
        "ties#the-tied-share",
    ),
    Term(
        "tie",
        "Documents with exactly the same score. A tie has no winner: every number is what all their orders give on "
        "average.",
        r"[Tt]ies?|[Tt]ied",
        "ties",
    ),
    Term(
        "trec_eval",
        "The program that the field measures with. It orders documents of one score by their ids, which can hand every "
        "tie to one side.",
        page="ties#the-trap",
    ),
    Term(
        "BM25",
        "A ranker that counts the query's words in a document, rare words more, long documents less.",
        r"\bbm25\b|BM25",
    ),
    Term(
        "TF-IDF",
        "A ranker that counts the query's words in a document, rare words more.",
        r"tfidf|TF-IDF",
    ),
    Term(
        "dense",
        "A ranker that has a neural model, named behind the colon, make a list of numbers of each text. Texts of like "
        "meaning get like numbers, and those nearest to the query's come first.",
        r"dense(?::[\w./:-]*\w)?",
    ),
    Term(
        "cross-encoder",
        "A re-ranker that is a neural model and reads the query and one document at a time; monoBERT and monoT5 are "
        "such models.",
        r"(?:cross-encoder|monobert|monot5)(?::[\w./:-]*\w)?|[Cc]ross-encoders?|monoBERT|monoT5",
    ),
    Term(
        "replay",
        "A ranking that was made elsewhere, and read from the file named behind the colon.",
        r"replay(?::[\w./:-]*\w)?",
    ),
    Term(
        "engine",
        "A search engine that was asked while it was running.",
        r"(?:engine|milvus):[\w./:-]*\w",
    ),
    Term(
        "vector",
        "The list of numbers that a neural model makes of a text; an encoder is a model that makes them.",
        r"[Vv]ectors?|[Ee]ncoders?",
    ),
    Term("token", "A word or a piece of one, as a neural model reads it.", r"[Tt]okens?"),
    Term(
        "temperature",
        "How freely a language model chooses its words: near 0 nearly always the likeliest, at 1 as often as it finds "
        "them likely.",
        r"[Tt]emperatures?",
    ),
)
_TEXTS = (
    Term(
        "confound",
        "Something else, beside who wrote it, in which the two sides differ and which could explain a tilt.",
        r"[Cc]onfounds?",
        "confounds-and-controls",
    ),
    Term(
        "control",
        "The same ranking once more, with one difference between the sides taken away: length (every text cut to the "
        "words of its shortest twin), tokens (to the tokens that the model reads of it), boilerplate (set openings "
        "removed), near-identical (such pairs left out), titles (shared ones removed). A tilt that goes with a control "
        "came from that difference.",
        r"[Cc]ontrol(?:s|led)?",
        "confounds-and-controls#controls",
    ),
    Term(
        "raw",
        "As ranked: no difference between the sides is taken away.",
        r"[Rr]aw(?= and| beside| value|$)",
        "confounds-and-controls#controls",
    ),
    Term(
        "truncation",
        "A neural model reads only so many tokens of a text; what lies behind does not count.",
        r"[Tt]runcat(?:ed|ion)",
        "confounds-and-controls#confounds",
    ),
    Term(
        "query words",
        "The share of a query's different words that a relevant document holds. A ranker that counts words goes by it.",
        r"[Qq]uery words",
        "confounds-and-controls#confounds",
    ),
    Term(
        "cut-off endings",
        "Texts that do not end as a sentence does: their rest is missing.",
        r"[Cc]ut-off endings?",
        "confounds-and-controls#confounds",
    ),
    Term(
        "boilerplate",
        "Openings of a language model that are about its task, such as “Here is a rewritten version”.",
        r"[Bb]oilerplate(?: openings?)?",
        "confounds-and-controls#confounds",
    ),
    Term(
        "near-identical",
        "Two texts that are not the same, but of whose different words at least 95 in 100 stand in both, unless "
        "another limit is named.",
        r"[Nn]ear-identical",
        "confounds-and-controls#confounds",
    ),
    Term(
        "Jaccard similarity",
        "Of all different words in either text, the share that is in both: 1 for the same words, 0 for none in common.",
        r"Jaccard(?: similarity)?",
    ),
    Term(
        "overlap",
        "Of the different words of the original, the share that its rewrite kept: 1 if all are there, 0 if none is.",
    ),
    Term(
        "cosine similarity",
        "How alike a model finds the meaning of two texts: 1 for the same direction of their vectors, 0 for nothing in "
        "common.",
        r"[Cc]osine(?: similarity)?",
    ),
)
_ESTIMANDS = tuple(Term(one.term, one.definition, one.pattern, one.page) for one in every_estimand() if one.definition)
TERMS = (_PIPELINE, *_ESTIMANDS, *_QUESTIONS, *CERTAINTY, *_RANKING, *_TEXTS)
"""Where two could begin at one place, the first is taken: so the longer ones come first."""

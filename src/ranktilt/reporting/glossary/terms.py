"""The words of the trade that pages use, each with a definition for a colleague from another field."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ranktilt.measures.base import every_estimand
from ranktilt.reporting.glossary.measure_pages import anchor_of


@dataclass(frozen=True)
class Term:
    """One word of the trade."""

    title: str
    definition: str
    pattern: str = ""
    """What stands for it in a text, as a regular expression; the title itself where this is empty."""
    page: str = ""
    """Where docs/measures says more: a page's name, or with the section as in ``statistics#random-band``."""

    @property
    def anchor(self) -> str:
        """The name of its entry in the method notes."""
        plain = self.title.lower().replace("Δ", "delta").replace("δ", "delta")
        return "term-" + re.sub(r"[^a-z0-9]+", "-", plain).strip("-")

    @property
    def page_name(self) -> str:
        """The name of its page, without a section; empty where it has none."""
        return self.page.partition("#")[0]

    @property
    def page_anchor(self) -> str:
        """The name of the place on its page; empty where it has none."""
        return anchor_of(self.page) if self.page else ""

    @property
    def regex(self) -> str:
        return self.pattern or re.escape(self.title)


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
_STATISTICS = (
    Term(
        "95 % interval",
        "The range of answers that go with what was seen: computed from many sets of queries of this kind, it would "
        "hold the true answer 95 times in 100.",
        r"95\s%\sintervals?|(?<!%\s)[Ii]ntervals?",
        "statistics#interval",
    ),
    Term(
        "90 % interval",
        "The range that goes with two one-sided tests at 5 %: equivalence is shown if it lies inside the margin.",
        r"90\s%\sintervals?",
    ),
    Term(
        "bootstrap",
        "Drawing queries again and again with replacement, to see how far an answer depends on them. Each set of drawn "
        "queries is a resample.",
        r"[Bb]ootstrap|[Rr]esampl(?:es?|ed|ing)",
        "statistics#interval",
    ),
    Term(
        "corrected p",
        "A p that was made larger because several questions were asked at once; below .05 it counts as a finding.",
        r"[Cc]orrected p\b|[Cc]orrections?",
        "statistics#correction",
    ),
    Term(
        "p",
        "How often a difference at least this large would come by chance alone if there were none.",
        r"\bp different|\bp equivalent|\bp(?=\s[<=>]|$)",
        "statistics#test",
    ),
    Term(
        "Holm",
        "A correction for asking many questions at once: without it, one test in twenty finds something by chance.",
        page="statistics#correction",
    ),
    Term(
        "Bonferroni",
        "A strict correction for asking many questions at once: every p is multiplied by the number of questions.",
        page="statistics#correction",
    ),
    Term(
        "sign-flip permutation test",
        "If neither side were favoured, the two sides of a query could be exchanged and nothing would change. They are "
        "exchanged at random thousands of times: p says how often the difference is then as large as the one seen.",
        r"(?:[Pp]aired )?[Ss]ign[- ]flips?(?: permutation tests?)?|[Pp]ermutation tests?",
        "statistics#test",
    ),
    Term(
        "sign test",
        "Every query has one vote, for the side that wins more of its pairs. p says how often a fair coin would give a "
        "majority as clear.",
        r"[Ss]ign tests?",
        "statistics#test",
    ),
    Term(
        "t test",
        "A test whether the mean of differences is 0, for means that scatter as sums of many small causes do.",
        r"(?:[Pp]aired )?t tests?|[Pp]aired t\b",
        "statistics#test",
    ),
    Term(
        "exchanged labels",
        "The two labels of each pair of twins are exchanged at random, many times, in all queries at once: to see what "
        "would come out if the labels meant nothing.",
        r"[Ee]xchanged labels|[Ll]abels exchanged",
        "statistics#test",
    ),
    Term(
        "shuffled labels",
        "The labels are dealt out anew by chance, many times: to see what would come out if they meant nothing.",
        r"[Ss]huffled labels|[Ll]abels shuffled",
        "statistics#test",
    ),
    Term(
        "random band",
        "Where 95 of 100 answers lie if labels are dealt out by chance. Groups that are not twins are unequal from the "
        "start, so their answers are held against this band, not against 0.",
        r"[Rr]andom band",
        "statistics#random-band",
    ),
    Term(
        "detectable effect",
        "The smallest effect that so many queries would reveal four times in five. A smaller one may be there unseen.",
        r"[Dd]etectable(?: effects?| tilts?)?|could (?:only |not )?detect",
        "statistics#detectable-effect",
    ),
    Term(
        "favours",
        "Said where the corrected p is below .05 and the 95 % interval leaves out the value that stands for no "
        "preference, which is 0 for twins.",
        r"[Ff]avour(?:s|ed)",
        "statistics#verdict",
    ),
    Term(
        "level",
        "Of a ranker: no side is favoured as far as matters, because the whole 95 % interval lies within ±5 points (or "
        "another limit, named beforehand) of no preference. Of a number: the value that stands for no preference.",
        r"[Ll]evel",
        "statistics#verdict",
    ),
    Term(
        "inconclusive",
        "Neither a favoured side nor a level ranker could be shown with these queries. It does not mean that there is "
        "no tilt.",
        r"[Ii]nconclusive",
        "statistics#verdict",
    ),
    Term(
        "significant",
        "Of a difference: larger than chance would easily give, which is said where the corrected p is below .05.",
        r"[Ss]ignificant(?:ly)?",
        "statistics#test",
    ),
    Term("standard deviation", "How far values scatter around their mean.", r"[Ss]tandard deviations?|sd"),
    Term("seed", "Where random draws begin: the same seed gives the same numbers again.", r"[Ss]eeds?"),
    Term("points", "Percentage points: from 20 % to 25 % are 5 points.", r"(?:(?<=\d )|(?<=, )|(?<=in ))points"),
    Term(
        "rank correlation",
        "Whether one quantity rises as another does: +1 always, −1 the other way round, 0 neither.",
        r"[Rr]ank correlation",
    ),
    Term(
        "quartiles",
        "The values that cut sorted numbers into four parts of equal size; the middle one is the median.",
        r"[Qq]uartiles?|[Mm]edian",
    ),
    Term(
        "TOST",
        "Two one-sided tests of equivalence. Not “no difference was found” but “a difference as large as the margin is "
        "ruled out”: two systems are called equivalent only if a whole interval, of 90 % for tests at 5 %, lies inside "
        "the margin.",
    ),
    Term("margin", "The largest difference that still counts as none; it is chosen before looking."),
    Term(
        "AUC",
        "How often a classifier gives the higher mark to the right one of two texts, one of each side: .5 by guessing, "
        "1 if it always can tell them apart.",
    ),
    Term(
        "forest plot",
        "A figure with a line for each result: a point for the value and a bar for its interval.",
        r"[Ff]orest plots?",
    ),
    Term(
        "t-SNE",
        "A drawing of texts in the plane that puts texts of like meaning close together. Only who is next to whom "
        "counts: distances between far points, the axes and the sizes of clusters mean nothing.",
    ),
)
_PAIRS = (
    Term(
        "inconsistent",
        "Of a pair that was shown in both orders: the answers name different documents, mostly the one in the same "
        "place both times.",
        r"[Ii]nconsistent",
    ),
    Term(
        "consistent",
        "Of a pair that was shown in both orders: both answers name the same document, wherever it stood. "
        "Unless each answer counts by itself, only such pairs count for a side.",
        r"[Cc]onsistent|[Bb]oth orders agree",
    ),
    Term("unparsed", "Of an answer: no document can be read from it. Of a pair: one of its two.", r"[Uu]nparsed"),
    Term(
        "position bias",
        "Preferring a document for its place in the question. Each pair is shown in both orders, so that it cannot "
        "pass for a preference between groups.",
        r"[Pp]osition bias",
    ),
    Term(
        "first named",
        "The share of the answers that name the document shown first: half of them without position bias.",
        r"[Ff]irst named|shown first is named",
    ),
)
_BENCH = (
    Term(
        "intervention",
        "What is done to a ranker to take its tilt away, such as training it with a constraint; its strength is how "
        "much of it is done.",
        r"[Ii]nterventions?",
    ),
    Term(
        "baseline",
        "What the others are held against: the ranker, or the audit, before anything was done.",
        r"[Bb]aseline",
    ),
    Term(
        "over-corrected",
        "Tilted to the other side than before: the intervention does too much.",
        r"[Oo]ver-correct(?:s|ed|ion)?",
    ),
    Term(
        "Pareto front",
        "The choices that no other one beats in both respects: what is better in one than these is worse in the other.",
    ),
)
TERMS = (_PIPELINE, *_ESTIMANDS, *_QUESTIONS, *_STATISTICS, *_RANKING, *_TEXTS, *_PAIRS, *_BENCH)
"""Where two could begin at one place, the first is taken: so the longer ones come first."""

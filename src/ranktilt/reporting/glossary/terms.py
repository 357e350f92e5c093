"""The words that pages explain: estimands, statistics, and what this tool calls its own findings."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ranktilt.measures.base import every_estimand
from ranktilt.reporting.glossary.measure_pages import anchor_of


@dataclass(frozen=True)
class Term:
    """One word that is explained."""

    title: str
    definition: str
    pattern: str = ""
    """What stands for it in a text, as a regular expression; the title itself where this is empty."""
    page: str = ""
    """Where docs/measures says more: a page's name, or with the section as in ``statistics#random-band``."""

    @property
    def anchor(self) -> str:
        """The name of its entry in the method notes."""
        plain = self.title.lower().replace("δ", "delta")
        return "term-" + re.sub(r"[^a-z0-9]+", "-", plain).strip("-")

    @property
    def page_name(self) -> str:
        """Its page without the section; empty where it has none."""
        return self.page.partition("#")[0]

    @property
    def target(self) -> str:
        """What it leads to: the place on its page, or its entry in the notes."""
        return anchor_of(self.page) if self.page else self.anchor

    @property
    def regex(self) -> str:
        return self.pattern or re.escape(self.title)


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
)
_RANKING = (
    Term("twin", "The two texts that belong together: an original and its rewrite.", r"[Tt]wins?"),
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
        "overlap",
        "Of the different words of the original, the share that its rewrite kept: 1 if all are there, 0 if none is.",
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
        "bootstrap",
        "Drawing queries again and again with replacement, to see how far an answer depends on them. Each set of drawn "
        "queries is a resample.",
        r"[Bb]ootstrap|[Rr]esampl(?:es?|ed|ing)",
        "statistics#interval",
    ),
    Term(
        "corrected p",
        "A p that was made larger, by Holm's way or Bonferroni's, because several questions were asked at once: one "
        "test in twenty finds something by chance. Below .05 it counts as a finding.",
        r"[Cc]orrected p\b|[Cc]orrections?|Holm|Bonferroni",
        "statistics#correction",
    ),
    Term(
        "p",
        "How often a difference at least this large would come by chance alone if there were none.",
        r"\bp different|\bp equivalent|\bp(?=\s[<=>]|$)",
        "statistics#test",
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
        "exchanged labels",
        "The two labels of each pair of twins are exchanged at random, or without twins all labels shuffled, many "
        "times: to see what would come out if the labels meant nothing.",
        r"(?:[Ee]xchanged|[Ss]huffled) labels|[Ll]abels (?:exchanged|shuffled)",
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
        "TOST",
        "Two one-sided tests of equivalence. Not “no difference was found” but “a difference as large as the margin is "
        "ruled out”: two systems are called equivalent only if a whole interval, of 90 % for tests at 5 %, lies inside "
        "the margin.",
    ),
    Term("margin", "The largest difference that still counts as none; it is chosen before looking."),
)
_PAIRS = (
    Term(
        "consistent",
        "Of a pair that was shown in both orders: both answers name the same document, wherever it stood. "
        "Unless each answer counts by itself, only such pairs count for a side.",
        r"(?:[Ii]nc|[Cc])onsistent|[Bb]oth orders agree",
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
    Term(
        "over-corrected",
        "Tilted to the other side than before: the intervention does too much.",
        r"[Oo]ver-correct(?:s|ed|ion)?",
    ),
)
TERMS = (*_ESTIMANDS, *_QUESTIONS, *_STATISTICS, *_RANKING, *_TEXTS, *_PAIRS)
"""Where two could begin at one place, the first is taken: so the longer ones come first."""

"""What the words of statistics on a page mean."""

from __future__ import annotations

from ranktilt.reporting.glossary.term import Term

CERTAINTY = (
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

"""Audit runs, and say which group of documents each run favours.

The way from rankings to a verdict has four steps, one function each:

    prepare  →  measure  →  infer  →  conclude

`prepare` checks the options, groups the documents and aligns runs with judgments. `measure`
computes a value of each run per query and group. `infer` adds intervals and tests. `conclude` puts
the data into an `Audit`. Sentences, tables and figures are made from it later, in `reporting`.

A *run* is a ranker's lists, one for each query. *Judgments* say which documents people found
relevant. A *group* is the documents with one value of a column, such as all texts of one source. An
*estimand* is a question about two groups, such as ``NDSR@20``; a *measure* is one that reads
judgments, such as ``nDCG@10``. The *card* is the list of the questions that are no measures.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ranktilt.auditing.card import DEPTH
from ranktilt.auditing.conclude import conclude
from ranktilt.auditing.groups import Pair
from ranktilt.auditing.infer import infer
from ranktilt.auditing.measure import measure
from ranktilt.auditing.options import AuditOptions
from ranktilt.auditing.prepare import Estimands, prepare
from ranktilt.auditing.query_groups.break_down import break_down
from ranktilt.auditing.result import Audit
from ranktilt.auditing.significance import InferenceOptions
from ranktilt.auditing.storage.top_results import KEEP_TOP
from ranktilt.data.collection import Collection
from ranktilt.data.labels.label_errors import LabelErrors
from ranktilt.data.runs.run import Run
from ranktilt.measures.base import Estimand
from ranktilt.measures.margin import DEFAULT_MARGIN, Margin
from ranktilt.statistics.bootstrap import RESAMPLES


def audit(
    collection: Collection,
    runs: Run | Sequence[Run],
    measures: Estimands = None,
    *,
    primary: str | Estimand | None = None,
    card: bool = False,
    depth: int = DEPTH,
    confounds: bool = True,
    by: str | None = "source",
    pairs: Iterable[Pair] | None = None,
    missing: str = "zero",
    ties: str = "expected",
    rounding: str = "none",
    test: str = "interval",
    correction: str = "holm",
    margin: Margin = DEFAULT_MARGIN,
    resamples: int = RESAMPLES,
    seed: int = 0,
    keep_top: int = KEEP_TOP,
    label_errors: str | LabelErrors | None = None,
    by_query: str | None = None,
) -> Audit:
    """Return which group of documents each run favours, with intervals and corrected tests.

    Parameters
    ----------
    collection : Collection
        Documents, queries and judgments. Judgments of documents that are in no group count only in
        the row ``all``, which has every document.
    runs : Run or sequence of Run
        Rankings of the mixed collection. The repeats of a run (`Run.from_repeats`) are averaged
        within each query.
    measures : str, Estimand or iterable of them, optional
        By default nDCG at 1, 3, 5 and 10 and AP at 1, 3 and 5; none without judgments. The card
        answers other estimands, such as ``"NDSR@20"``.
    primary : str or Estimand, optional
        The question that verdicts answer, chosen before you see the data; all others are secondary.
        By default it is the nDCG of `measures` with the largest cutoff, or else the first of them.
        Without judgments or measures it is head-to-head over all twins, or Share@10 without twins.
        For groups other than sources it is ExposureRatio, if you ask it.
    card : bool, optional
        Ask the other questions too: which group fills the first ranks, which of two twins (versions
        of one document) ranks higher and by how much. `Audit.card` has the answers.
    depth : int, optional
        Number of first ranks that ΔNDSR counts.
    confounds : bool, optional
        Compare the texts of the sources too, such as their lengths (`Audit.confounds`). This needs
        texts, and groups by ``source``.
    by : str or None, optional
        Document column to group by; None for no groups. Documents without a value are counted, but
        in no group. If only one group is left, its values are given and nothing is compared.
    pairs : iterable of (str, str), optional
        Pairs of groups to compare; all pairs by default. Positive values favour the first group.
    missing : {"zero", "exclude"}, optional
        Whether a judged query that a run lacks counts 0, as with trec_eval's ``-c``, or not at all
        for that run.
    ties : {"expected", "trec_eval"}, optional
        Expected value over all orders of tied documents, or trec_eval's order by id (for published
        numbers).
    rounding : {"none", "paper"}, optional
        Round means to 0.1 % before Relative Δ, as the papers do.
    test : {"interval", "t"}, optional
        Source of p: the level at which the interval first excludes the neutral value; or, for
        twins, a paired t test over queries, as in some papers.
    correction : {"holm", "bonferroni"}, optional
        Correction of p for several tests. The p on the primary question, of all runs and pairs, are
        corrected together. The others are corrected together in each table.
    margin : float or str, optional
        Largest distance from the neutral value that a verdict calls level, in percentage points. If
        the primary question has another unit, a text with that unit: ``"0.5 ranks"``.
    resamples, seed : int, optional
        Number of bootstrap resamples; random seed of all draws.
    keep_top : int, optional
        Number of first ranks of every list that the audit saves for its reports; fewer if runs have
        over half a million results together. 0 saves none.
    label_errors : str or LabelErrors, optional
        How often labels are wrong: rates such as ``"ai:fpr=.02,fnr=.05"``, or the file of a checked
        sample. Answers are then corrected for these errors, and questions that cannot be corrected
        are refused. Without `measures` the audit asks Share@10.
    by_query : str, optional
        Groups of queries: a column of the queries, bins of its numbers (``"year:3"``), or a file
        with ids of queries (``"topics.csv:topic"``). `Audit.by_query` then has every answer for
        each group of queries, and tests whether the groups differ.
    """
    if isinstance(label_errors, str):
        label_errors = LabelErrors.from_text(label_errors)
    options = AuditOptions(
        by=by,
        pairs=None if pairs is None else tuple(pairs),
        primary=primary,
        card=card,
        depth=depth,
        confounds=confounds,
        missing=missing,
        ties=ties,
        margin=margin,
        keep_top=keep_top,
        inference=InferenceOptions(
            resamples=resamples,
            seed=seed,
            test=test,
            correction=correction,
            rounding=rounding,
        ),
        label_errors=label_errors,
        by_query=by_query,
    )
    inputs = prepare(collection, runs, measures, options)
    measurements = measure(inputs)
    inferences = infer(inputs, measurements)
    answers_by_query_group = None
    if inputs.query_groups is not None:
        answers_by_query_group = break_down(inputs, inferences, inputs.query_groups)
    return conclude(inputs, measurements, inferences, answers_by_query_group)

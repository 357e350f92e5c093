"""The heart: measure × group on one mixed ranking, with intervals, tests and verdicts.

Start reading in `audit`, which is four functions, each in a module of its name: `prepare` groups
documents (`grouping`, which also finds twins) and aligns runs (`judged_run`) with `judgments`,
`measure` computes values per query, `infer` adds intervals and p, `conclude` makes the `Audit`
(`result`) with its notes and provenance.

To follow one number: `judged_run.group_values` calls the measure (`measures/relevance`, then its
own file), `infer` puts the values into a `significance.Sample`, `significance.effects` makes an
`effects.Effect` of it (its interval and p are from `statistics/inversion`), `Effect.verdict` is the
rule that decides, and `answer/verdict` applies it to a run.

- `card`: the questions besides Relative Δ; how head-to-head, rank gap and score gap of twins are
  computed is in `measures/twins`
- `null_distributions`: what random labels, or exchanged labels of twins, would give
- `repeats`: an engine that ranked each query several times
- `confounds` counts what else differs between groups; `controls` take it away and audit again
- `answer`: verdicts, letters of groups, and the next steps
- `gate`: an audit judged by limits; `comparison`: two audits
- `pairwise`: a model's choices between two texts; `replay_log`: stored calls of a model
- `sequential`: audits of a live engine; `sources`: an audit of each of several sources
- `storage`: what the file of an audit holds besides its answers
- `checks`: what ``ranktilt check`` and audits share

Words of this room, which its files use without explaining them again:

- group: the documents with one value of the audited column, usually of ``source``; a pair is two
  groups that are compared, written `a` and `b`, and positive values favour `a`
- twins: two versions of one document in different groups, such as a text and its rewrite
- question: what is asked about a pair, for example Relative Δ of nDCG@10 or Share@10. In code it
  is an *estimand* (`measures.base`). The primary question is the one that decides the verdict; the
  card holds all others
- sample: what a question needs to know of every query, before any statistics; an effect: the
  answer of one run to one question, with interval and p; a tilt: an effect of Relative Δ
- neutral: the value of an answer that favours nobody; the margin: how far from it an answer may
  lie and still be called level
- null distribution: the answers that random labels, or exchanged twins, would give; the random
  band is the middle 95 % of it
- judgments: which documents people found relevant (qrels); a judged run is a run aligned with them
- noise: how far answers would move if scores were rounded as another machine rounds them

May import rankers, measures, statistics and data. A new question is an estimand in
`ranktilt.measures`. Tests: tests/auditing.
"""

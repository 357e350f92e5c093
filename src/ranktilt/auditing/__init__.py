"""The heart: measure × group on one mixed ranking, with intervals, tests and verdicts.

Start reading in `audit`, which is four functions, each in a module of its name: `prepare` groups
documents (`grouping`, which also finds twins) and aligns runs with judgments (`judged_run`),
`measure` computes values per query, `infer` adds intervals and p (`significance`, `effects`),
`conclude` makes the `Audit` (`result`) with its notes and provenance.

- `card`: the questions besides Relative Δ; how head-to-head, rank gap and score gap of twins are
  computed is in `measures/twins`
- `null_distributions`: what random labels, or exchanged labels of twins, would give
- `repeats`: an engine that ranked each query several times
- `controls`, `confounds`: take away, and count, what else differs between groups
- `answer`: verdicts, letters of groups, and the next steps
- `gate`: an audit judged by limits; `comparison`: two audits
- `pairwise`: a model's choices between two texts; `replay_log`: stored calls of a model
- `sequential`: audits of a live engine; `source_audits`: audits of several sources

May import rankers, measures, statistics and data. A new question is an estimand in
`ranktilt.measures`. Tests: tests/auditing.
"""

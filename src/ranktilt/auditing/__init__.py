"""The heart: measure × group on one mixed ranking, with intervals, tests and verdicts.

Start reading in `audit`: it aligns runs with judgments (`judged_run`), groups documents
(`groups`), measures each query, and infers (`effects`, `significance`). `result` is the `Audit`.
`card` asks five questions side by side, `controls` take away what else differs, `confounds` count
it; `null_distributions` draw what random labels would give; `answer` holds verdicts, the gate and
the next steps, `comparison` two audits, `pairwise` a model's choices, `sequential` a live engine,
`source_audits` several sources. May import rankers, measures, statistics and data. A new question
is an estimand in `ranktilt.measures`. Tests: tests/auditing.
"""

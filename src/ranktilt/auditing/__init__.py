"""The heart: measure × group on one mixed ranking, with intervals, tests and verdicts.

Start reading in `audit`, which is four functions, each in a module of its name: `prepare` groups
documents (`groups`) and lines runs up with judgments (`judged_run`), `measure` gives values per
query, `infer` asks for intervals and p (`significance`, `effects`), `conclude` makes the `Audit`
(`result`) with its notes and provenance.
`card` asks five questions side by side, `controls` take away what else differs, `confounds` count
it; `null_distributions` draw what random labels would give; `answer` holds verdicts and the next
steps, `gate` judges by limits, `comparison` compares two audits, `pairwise` a model's choices,
`replay_log` reads stored calls again, `sequential` asks a live engine, `source_audits` audits
several sources. May import rankers, measures, statistics and data. A new question
is an estimand in `ranktilt.measures`. Tests: tests/auditing.
"""

"""Answers from contexts that differ in one thing: which version of a text, position or label wins.

Start with `experiment.context_experiment`: `comparisons` lines up the citations that differ in one
thing only, `effects` asks each question of them, `paired` gives each comparison its share, interval
and p (McNemar's test, clustered by query and document), and `result` is the outcome: data only.
`gate` compares it with a limit. Of versions by design, `factors` says what each factor does to
being cited, and cited first. The words are in `reporting/sentences/context_experiment`, the page
in `reporting/views/context_experiment`. Tests: tests/citing/test_experiment.py.
"""

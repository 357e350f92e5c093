"""Answers from contexts that differ in one thing: which version of a text, position or label wins.

Words of this folder: a *comparison* is two citations in which one thing differs: the two versions
of a document in one answer (*twins*), the version shown first and the one shown second, or one text
shown with either label. McNemar's test looks at the comparisons in which only one of two is cited;
the share of the first among these is the *value* of an effect, and 50 % favours neither.

Start with `experiment.context_experiment`: `comparisons` lines up the citations that differ in one
thing only, `effects` asks each question of them, `paired` gives each comparison its share, interval
and p (McNemar's test, clustered by query and document), and `result` is the outcome: data only.
`gate` compares it with a limit. Of versions by design, `factors` says what each factor does to
being cited, and cited first. The words are in `reporting/sentences/citing/context_experiment`, the
page in `reporting/views/cite/context_experiment`. Tests: tests/citing/test_experiment.py.
"""

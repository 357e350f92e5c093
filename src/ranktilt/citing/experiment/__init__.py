"""Answers from contexts that differ in one thing: the version of a text, its position or its label.

Words of this folder: a *context* is the documents that a model is shown with a query. A
*comparison* is two possible citations that differ in one thing: the two versions of a document in
one answer (*twins*), the version shown first and the one shown second, or one text shown with
either label. McNemar's test looks at the comparisons in which only one of the two is cited; the
share of the first among these is the *value* of an effect, and 50 % favours neither.

Start with `experiment.context_experiment`. `comparisons` lists the citations that differ in one
thing only, `effects` answers each question from them, and `paired` gives each share its interval
and p (McNemar's test, clustered by query and document). `result` is the outcome: data only. `gate`
compares it with a limit. `factors` is for versions that differ by design: it says what each factor,
such as length, does to being cited, and to being cited first. The words are in
`reporting/sentences/citing/context_experiment`, the page in
`reporting/views/cite/context_experiment`. Tests: tests/citing/test_experiment.py.
"""

"""Versions by design: documents written in combinations of factors, as in an experiment.

Start with `make.versions`. A *factor* (`factors`) is a property with two levels: ``low``, the text
as it is, and ``high``, changed by a rule (`rules`, `answer_sentences`) or a language model. A
*design* (`design`) says in which combinations a document is written; `writer` makes the texts,
`judgments` carries the grades over, `checks` measures whether each factor moved what it should,
`prices` estimates what prompts cost, and `save` writes the folder. `table` reads versions that
exist already.

To add a factor by rule, write a function in `rules` and name it in `factors.RULES`. What factors do
to ranks is in `ranktilt.explaining.factors`, what a judge says of changed facts in
`ranktilt.judging.grading.changed_facts`. Tests are in ``tests/generation/versions``.
"""

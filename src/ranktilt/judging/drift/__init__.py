"""Compare two audits of judges on the pairs that both graded, to find out whether a judge changed.

Start with `drift`. `match` finds the judges and pairs that both audits have, `grade_changes` and
`coefficient_changes` compute the changes, and `result` is the outcome.

A *judge* is whoever gives grades of relevance. The judge of the earlier audit is the *old* one, and
that of the later audit the *new* one. A *pair* is a query and a document.
"""

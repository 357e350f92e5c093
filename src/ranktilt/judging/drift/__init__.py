"""Compare two audits of judges on the pairs that both graded, to find out whether a judge changed.

Start with `drift`. `match` finds the judges and pairs, `grade_changes` and `coefficient_changes`
ask the questions, `evaluated_runs` finds the systems that both evaluate, and `result` is the
outcome.
"""

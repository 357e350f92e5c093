"""Judges of relevance: grades made by models, compared with people's, and put to the test.

Start with `judge.judge`: it reads `judge_grades` and computes agreement with human grades
(`agreement`; Cohen's κ and Krippendorff's α are in `statistics/agreement.py`), the gap between
twins (`grade_gap`, `source_results`), the families that a judge favours (`family_preference`) and
the order of systems (`systems`, `system_results`). `records` holds the rows of its result.
`calibration` asks whether a judge is right when it is sure. `grading` lets a model grade, `probes`
tempt it, with longer passages too (`length_doses`), `corrected` repairs its numbers with a human
sample, `judge_scores` starts from published values. `drift` compares two audits on the pairs that
both graded (`drift_match`, `coefficient_changes`, `grade_changes`), and `gate` holds a judge to
limits.
May import auditing, generation and below. Tests: tests/judging.
"""

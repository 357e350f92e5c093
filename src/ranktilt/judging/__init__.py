"""Judges of relevance: grades made by models, compared with people's, and put to the test.

Start with `judge.judge`: it reads `judge_grades` and computes agreement with human grades
(`agreement`; Cohen's κ and Krippendorff's α are in `statistics/judges/agreement.py`), the gap
between twins (`source_results`), and in `systems` the families that a judge favours and the order
of systems. `records` holds the rows of its result. `calibration` asks whether a judge is right when
it is sure. `grading` lets a model grade, and tempts it with changed passages. `drift` compares two
audits on the pairs that both graded, and `gate` holds a judge to limits.

Words of this room: a *grade* is a whole number that says how relevant a document is to a query; a
*judge* is a model, or a person, who gives grades; *human grades* are the qrels that a judge is
compared with; a *family* is the models of one maker, which may favour their own texts; a *system*
is a ranker whose run is evaluated by both kinds of grades; a *probe* changes a text in a way that
should not change its grade, and asks again.

May import auditing, generation and below. Tests: tests/judging.
"""

"""Judges of relevance: grades made by models, compared with people's, and put to the test.

Start with `judge.judge`: it reads `judge_grades`, and has agreement with human grades
(`agreement`), the gap between twins
(`grade_gap`, `source_results`), families that a judge favours (`family_preference`), the order of
systems (`systems`, `system_results`). `grading` lets a model grade, `probes` tempt it, `corrected`
repairs its numbers with a human sample, `judge_scores` starts from published values. May import
auditing, generation and below. Tests: tests/judging.
"""

"""What follows from an audit, as data.

`verdict` decides which side a run favours, `group_standings` orders many groups, `next_steps`
chooses what to do next, and `command_words` writes that as commands. The words of a verdict are in
`reporting/sentences/verdicts.py`. Tests: tests/auditing/test_verdict.py, test_group_standings.py.
"""

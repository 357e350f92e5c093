"""What follows from an audit, as data.

- `verdict`: which of two groups a run favours, if any, and how many questions agree
- `group_standings`: the order of three groups or more, with letters for those that cannot be
  distinguished
- `next_steps`: up to three commands to run next, chosen by rules
- `command_words`: commands that read the same inputs as an audit

Start in `verdict`; the rule itself is `auditing.effects.Effect.verdict`. The words of a verdict are
in `reporting/sentences/verdicts.py`, those of a step in `reporting/sentences/findings`. May import
effects, groups, options and results of `auditing`, and all rooms below. A new step is a kind of
`NextStep`, a rule in `next_steps` and its words. Tests: tests/auditing/test_verdict.py,
tests/auditing/test_group_standings.py, tests/reporting/test_next_commands.py.
"""

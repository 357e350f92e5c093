"""A gate for continuous integration: an audit is within a limit, tilted or inconclusive.

Start with `gate.gate`. `options` has the limits, and looks up the answers that must pass. `gate`
checks the tilt of each answer and, if there is an earlier audit, the *baseline*, how much the tilt
has grown and whether effectiveness has fallen. `result` decides each of these checks, and holds the
outcome; its reasons are put in words in `reporting/sentences/gate.py`. Gates of judges and of
citations (`judging/gate.py`, `citing/gate.py`, `citing/experiment/gate.py`) fill the same result.

May import the rest of `auditing` and all below it. A new check is a name of `LimitCheck`, a
function in `result`, and its words. Tests: tests/auditing/test_gate.py.
"""

"""What ``ranktilt check`` and audits share: whether a collection can give a fair answer at all.

- `instrument`: sources are drawn by a coin; an audit that names a favoured one is wrong
- `equivalence`: whether a ranker is equally effective in the corpus of each source
- `failed_check`: an audit repeats, as a warning, what ``ranktilt check`` found

The command's own code, and its other checks, are in `explaining/check.py`. May import the rest of
`auditing` and all below it. Tests: tests/auditing/checks, tests/explaining/test_check.py.
"""

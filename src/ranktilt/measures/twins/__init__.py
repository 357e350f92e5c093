"""Questions about twins, the two versions of one document.

The *first side* is the version in the first of two compared groups, the *second side* its twin; a
*pair* is both of them. `head_to_head` asks which is ranked higher, `rank_gap` by how many ranks,
`score_gap` by how much score.

Start in `base`, which finds both twins in each list (`TwinLists`). Which documents are twins is
decided in `auditing/grouping/pairs.py`. May import the rest of `measures` and `statistics`. A new
question is a class here and a line in `measures.base.ESTIMANDS`. Tests:
tests/measures/test_twins.py.
"""

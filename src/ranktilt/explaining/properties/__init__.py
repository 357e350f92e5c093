"""Why, without twins: which properties of documents go with the gap between two groups.

Start with `gaps.explain_gaps`. `values` reads the properties: columns of numbers and features of
texts. `outcomes` says where documents stand in a run: score, rank and the first k. `rows` puts both
together, `result` holds what comes out; it is put into words in reporting. The statistics stand in
`ranktilt.statistics.gelbach`. May import what `explaining` may. Tests: tests/explaining/properties.
"""

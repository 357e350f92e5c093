"""Why, without twins: which properties of documents go with the gap between two groups.

Start with `gaps.explain_gaps`. `values` reads the properties: columns of numbers and features of
texts. `outcomes` says how high documents are in a run: by score, rank, or among the first k. `rows`
puts both together, and `result` holds the gaps and their parts. The statistics are in
`ranktilt.statistics.regression.gelbach`, the sentences in `reporting`. May import what `explaining`
may. Tests: tests/explaining/properties.
"""

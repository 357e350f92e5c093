"""Whom answers cite: one file a question, each of plain arrays.

Start with `base`: `CitationRows` are the pages of answers, and `CitationEstimate` is what a
question makes of them: a value and what each row adds to its error. `share`, `first_citation` and
`cited_words` say who is cited; `rate` and `equal_rank` say who is cited of what was consulted or
retrieved; `funnel` splits the share of citations by where it comes from. `concentration` and
`stability` describe answers without groups. Definitions: docs/measures/citations.md. May import
`ranktilt.statistics` and the errors. A new question is a file and a line in
`ranktilt.citing.questions`. Tests: tests/measures/citations.
"""

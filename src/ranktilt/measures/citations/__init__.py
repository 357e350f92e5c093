"""Whom answers cite: one file for each question, computed on plain arrays.

Words that every file here uses:

- A *page* is a document or a web page. Each page has a label; the two labels that are compared are
  *group a* and *group b*.
- The *pool* is what an answer could have cited: the pages that the engine *consulted* (read before
  it answered) or, where nobody recorded that, the pages *retrieved* for the query.
- *Neutral* is the value of a question at which neither group is favoured: 1 for a ratio of rates,
  the group's share of the pool for a share of citations.
- The *influence* of a row is what that row adds to the error of an estimate: the error is the root
  of the sum of squared influences, summed within queries and within domains first.

Start with `base`: `CitationRows` are the pages of answers, and `CitationEstimate` is what a
question makes of them. `share`, `first_citation` and `cited_words` say who is cited. `rate` and
`equal_rank` say who is cited among the pages of the pool. `funnel` splits the share of citations by
where it comes from. `concentration` and `stability` describe answers without groups.

Definitions: docs/measures/citations.md. This folder may import `ranktilt.statistics` and the
errors. A new question is a file here and a line in `ranktilt.citing.effect`. Tests:
tests/measures/citations.
"""

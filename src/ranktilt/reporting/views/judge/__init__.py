"""Pages of audits of judges: models that grade documents in place of humans.

`judge` makes the page; `agreement`, `systems`, `confidence` and `doses` are its sections, and
`drift` is the page of a comparison of judges.
"""

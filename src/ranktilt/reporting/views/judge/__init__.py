"""Pages of audits of judges.

`judge` makes the page; `agreement`, `systems`, `confidence` and `doses` are its sections, and
`drift` is the page of a comparison of judges.
"""

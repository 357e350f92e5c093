"""Pages that answers cite, or could have cited.

A page is known by its *key*, which is the same for all spellings of an address.

`labelled_pages` joins pages with labels, `retrieved_lists` reads what a search returned,
`kept_pages` is what a saved audit holds of both, and `citable_pages` makes a collection of pages
whose properties explain citations.
"""

"""Collections, runs and labels: read, checked, joined and written.

Start with `collection.Collection` and `run.Run`; `load.load` reads a folder or a public name
(`folders`, `hub`, `irds`, `bundled`), `labels` a label file, `queries` queries, `mix` unites
collections, `save` writes one. `formats` has a file for each file layout, `text` what can be seen
in a text itself. `artifact` is a result's file, `cache` and `inventory` what is kept, `texts` the
mapped columns of large collections. May import nothing but the top level's files. A new collection
is a reader or a builder (docs/reference/extending.md). Tests: tests/data.
"""

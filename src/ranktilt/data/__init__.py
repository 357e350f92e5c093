"""Collections, runs and labels: read, checked, joined and written.

A *collection* has documents, queries and judgments (*qrels*: how relevant a document is to a
query). A *run* is a ranked list of documents for each query. The *source* of a document is who
wrote it, and its *origin* is the document that it was rewritten from. A *label* is the value of any
column by which documents are grouped; a *group* is all documents with one label. A *pair* or
*twins* are two documents of one origin by different sources. A *split* is a named set of judgments,
such as ``test``. A *spec* says how an object was made.

Start with `collection.Collection` and `runs.run.Run`. `loading` reads a collection from a folder or
by its public name (`bundled` comes with the package), `labels` reads label files and joins labels
with documents, `queries` reads queries; `mix` unites collections, `save` writes one, and `faults`
finds what is wrong with one. `formats` has a file for each file layout, `text` what a text shows by
itself. `artifact` is the file of a result, `cache` keeps vectors, `inventory` lists the
cache, and `texts` maps the texts of large collections into memory. `notes` has what a reader of a
result should know.

More words of this room: the *reference* is the source whose documents the others were rewritten
from, usually human text; a *pool* is the set of documents from which a data set drew those to
rewrite; a *note* is something that a reader of a result should know, as data, which `reporting`
puts in words.

This room may import only the top level's files. A new collection is a reader or a builder
(docs/reference/extending.md). Tests: tests/data.
"""

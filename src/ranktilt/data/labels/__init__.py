"""Labels of documents: read from a file, joined with documents, and how often they are wrong.

A *label* is the value of a column by which documents are grouped, and a *group* is all documents
with one label. Start with `labels`, which joins labels with a collection or with runs. `label_file`
reads the text that names a file and its columns, `label_table` the file, and `label_remarks` notes
values that are probably the same. `group_names` reads the sides of a comparison, such as
``Europe|Asia``; `stated_sources` handles documents that do not say their source; `label_errors`
reads how often labels are wrong.
"""

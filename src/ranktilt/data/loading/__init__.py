"""Load a collection: from a folder of any known layout, or from a library by its name.

A *library* publishes collections: the Hugging Face hub, and ir_datasets. Start with `load.load`.
`folders` recognises the layout of a folder, and `assemble` makes a collection from documents,
queries and judgments in separate files. `collection_name` reads public names, which `hub` and
`irds` load.
"""

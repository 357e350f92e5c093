"""Other libraries' measures, pipelines and models, and functions, in a file for each library.

`ir_measures` turns our measures into theirs; `mteb` and `pyterrier` turn their models and pipelines
into rankers, and ours into theirs; `sentence_transformers`, `cross_encoder`, `langchain`,
`llama_index` and `function` make rankers of objects. Start in the file of the library, then in
`base` (`ObjectRanker`) or `retrievers`. May import every room but reporting, papers and cli. A new
library is a new file, and a line in `ranktilt.registry` if its objects rank. Tests:
tests/adapters.
"""

"""Analyze texts: split them into terms, and measure properties of texts.

Start with `quality`, which counts words and recognises boilerplate, refusals and cut-off texts.
`analyzers` split texts into terms for rankers, `features` and `ngram` measure properties of style,
`sequence` compares word orders, and `label_values` reads the values of labels.
"""

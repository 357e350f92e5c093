"""Effects of factors: what each property of a designed collection does to a document's rank.

In a *designed collection* each document is written in several *versions*, which differ in
*factors*, properties with a low and a high *level*.

Start with `effects.factor_effects`: `outcomes` computes how high each version ranks in a run,
`effects` regresses that on the factors within each document, and `result` holds the effects and
says which of them are shown. Designed collections are made by `ranktilt.generation.versions`. Tests
are in ``tests/explaining/factors``.
"""

"""How much is computed at once, and where: threads, memory, a Ray cluster.

`executor` maps a stage over items here or on a cluster, `run_on` chooses where, `memory_limits`
says how much a search may hold. Start in `executor`. May import the top level's files alone. Tests:
tests/parallel.
"""

"""Where work is computed, and how much of it at a time: threads, memory, a Ray cluster.

`executor` maps a stage over items here or on a cluster, `run_on` chooses where, `memory_limits`
says how much memory a search may take. Start in `executor`. May import the top level's files alone.
Tests: tests/parallel.
"""

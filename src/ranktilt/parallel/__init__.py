"""Where work is computed, and how much memory it may take: in this process, or on a Ray cluster.

Start in `executor`, which maps a stage over items, wherever they are computed. `run_on` chooses
where, and `memory_limits` says how much memory a search may take. May import only the top level's
files. Tests: tests/parallel.
"""

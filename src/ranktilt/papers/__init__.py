"""Three papers that RankTilt reproduces: code that only one of them needs, in a folder for each.

``dai``, ``wang`` and ``askari`` have readers and builders of their collections, rankers, presets,
tables and figures. A paper registers these as another package would, by entry points. Start in its
``EXTENSIONS``, which has, for each group of entry points, ``module:object`` by name. A paper may
import every other room; no other room imports a paper. A fourth paper is a folder like these, or a
package of its own (docs/reference/extending.md). Tests: tests/papers.
"""

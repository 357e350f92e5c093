"""The papers: what only one of them needs, each a plug-in of the tables that packages add to.

``dai``, ``wang`` and ``askari`` hold readers and builders of their collections, recipes of rankers,
presets, tables and figures. Start in the ``EXTENSIONS`` of each: group of entry points, name,
``module:object``. A paper may import every room below; nothing below imports a paper. A fourth one
is a folder like these, or a package of its own (docs/reference/extending.md). Tests: tests/papers.
"""

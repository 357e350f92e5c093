"""The explorer of a page: queries, ranked lists and texts to look through.

`section` makes the block of a page. It takes the ranked lists from `lists`, each query's numbers
from `numbers`, and packs as much as fits by `pack`, for the scripts in `templates/explorer`.
"""

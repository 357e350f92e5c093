"""The explorer of a page: queries, ranked lists and texts to look through."""

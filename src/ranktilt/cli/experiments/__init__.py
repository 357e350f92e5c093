"""Commands that change a collection, to see what rankers make of it."""

"""Documents written from queries by a language model."""

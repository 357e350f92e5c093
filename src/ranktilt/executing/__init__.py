"""How much is computed at once."""

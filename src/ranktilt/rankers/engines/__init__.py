"""Live engines, asked through their clients or a function."""

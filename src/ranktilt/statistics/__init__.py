"""Statistics: bootstrap, permutation tests, corrections; pure functions of plain arrays."""

"""Planning: what an audit of a larger collection would cost, from a measured sample."""

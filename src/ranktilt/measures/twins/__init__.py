"""Questions about twins: which stands higher, by how many ranks, and by how much score."""

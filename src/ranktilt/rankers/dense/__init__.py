"""Dense retrieval: exact search over vectors."""

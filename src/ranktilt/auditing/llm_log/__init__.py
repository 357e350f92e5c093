"""The stored answers of an LLM ranker, read again."""

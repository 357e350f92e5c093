"""The command line: one file a verb, each a parse and a call."""

"""What is said of an audit: verdicts, a gate, and what to do next."""

"""What follows from an audit, as data: verdicts, a gate, and what to do next."""

"""Why: what the texts of two sources share, and what tells them apart."""

"""Two rankings over the same queries, old beside new: of two audits, or of one."""

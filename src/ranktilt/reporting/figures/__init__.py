"""The figures of a page, drawn by plotly."""

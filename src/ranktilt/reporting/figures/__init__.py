"""The figures of pages, notebooks and papers, as Vega-Lite specifications."""

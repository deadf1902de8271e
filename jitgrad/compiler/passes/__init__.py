"""Functions from graph to graph; their order is in ``pipeline.py``."""

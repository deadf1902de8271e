"""Functions from graph to graph, in the order of `pipeline.py`; imports core, eager, ops, autograd, compiler."""

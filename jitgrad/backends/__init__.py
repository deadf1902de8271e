"""Targets: how the source of a kernel becomes something to call."""

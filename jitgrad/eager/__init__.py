"""Runs ops at once on NumPy arrays; imports core, vecmath."""

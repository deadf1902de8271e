"""Runs ops at once on NumPy arrays: scalar expressions, float16, pooled results; imports core, vecmath."""

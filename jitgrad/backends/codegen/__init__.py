"""From the loop IR to source text."""

"""One decorated function: its signature, its traces, its programs and the fast call. Imports everything below inspect."""

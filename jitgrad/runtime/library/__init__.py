"""Library operations as machine code: reads and writes at indices, scans, selection, searches. Imports the executor."""

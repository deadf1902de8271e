"""Which nodes share a loop nest, and why others stay apart. Imports the IR and the ops' records."""

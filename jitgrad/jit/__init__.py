"""A decorated function: signature, traces, programs, fast call; imports everything below it."""

"""A decorated function: signature, traces, programs, fast call, first-call check; imports everything below it."""

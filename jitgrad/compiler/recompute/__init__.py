"""A limit for the memory of temporaries: some values are computed again instead of being kept; imports compiler, core."""

"""Arrays on a CUDA device: driver, memory pool, copies; imports core and the eager memory pool."""

"""What a trace read from outside the function, and whether it has changed; imports core, autograd."""

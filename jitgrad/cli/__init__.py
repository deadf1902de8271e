"""The command line and the demonstration; imports everything below it."""

"""The command line and the demo. Imports everything below it; nothing imports it."""

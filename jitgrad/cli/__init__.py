"""The command line and the demonstration; imports all rooms below."""

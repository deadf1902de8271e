"""What programs that compile nothing do not need, imported at its first use; imports everything below it."""

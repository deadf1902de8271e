"""From the loop IR to the text of a kernel; imports core, eager, compiler."""

"""From the loop IR to the text of a kernel; imports llvm, core, eager, compiler."""

"""Where values are stored: in-place updates, an arena for temporaries; imports core, eager, ops,
compiler_ops, convolution_ops, lowering."""

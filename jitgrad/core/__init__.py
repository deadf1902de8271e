"""The records everything is made of: errors, avals, ops, graphs, tensors, and the one door
`apply_op`; imports vecmath."""

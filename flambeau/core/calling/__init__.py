"""A call, from its arguments to its result: `overrides` (does a mode or a type take it over?),
`call` (the path itself, on which `autograd.recording` makes the node), and `fast` (the same path in
C)."""

"""The engine: what every op goes through, and nothing else.

Reading order: `dtypes`, `devices`, `promotion` (what a number is); `modes` (what may happen
around a call); `tensor` (the state); `op` (how an op is declared, and the path a call takes);
`graph`, `engine` (reverse mode); `views` (in-place and aliasing); `forward` (forward mode);
`batching` (vmap); `overrides` (`__torch_function__`).
"""

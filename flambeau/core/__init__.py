"""The engine: what every op goes through, and nothing else.

Reading order: `dtypes`, `devices`, `promotion`, `shapes` (what a number and an array are); `modes`
(what may take a call over); `tensor` (the state); `op` (how an op is declared, and the path a call
takes); `hooks`, `graph`, `engine` (reverse mode); `views` (in-place and aliasing); `overrides`
(`__torch_function__`); `late_bound` (the few names that are defined above core). Forward mode and
batching are levels in `flambeau.transforms`.
"""

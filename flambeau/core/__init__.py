"""The engine: what every op goes through, and nothing else.

Reading order: `dtypes`, `devices`, `promotion`, `shapes` (what a number and an array are); `modes`
(what may take a call over); `tensor` (the state); `op` (what is declared of an op); `overrides`
(who takes a call over); `graph` (nodes, and what they save: `unpack` refuses what was written to
since); `call`, `recording`, `formulas` (a call, its node, its rules); `hooks`, `engine` (reverse
mode); `views` (in-place and aliasing; writes are counted by `_support.source_locations.bump`).
Beside the path: `fast` (the same in C), `backward_errors`, `late_bound` (the few names that are
defined above core), `type_info`, `narrow_dtypes`, `symbolic_names`. Forward mode and batching are
levels in `flambeau.transforms`.
"""

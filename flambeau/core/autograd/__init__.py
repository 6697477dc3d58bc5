"""Reverse mode: `graph` (nodes, edges, and what they save: `unpack` refuses what was written to
since), `recording` (the node of a call), `formulas` (what derivatives save, and how nodes apply
them), `hooks`, and `engine` (the backward pass). Beside them are `backward_errors`, which name the
user's lines, and `fresh_stack`, for passes inside passes."""

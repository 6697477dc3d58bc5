"""Bytes between processes over TCP: `addresses` (where others reach this machine), `connections`
(one for each pair, and a box for what has arrived) and `messages` (tensors as bytes)."""

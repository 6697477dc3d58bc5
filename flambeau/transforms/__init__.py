"""What can take a call over: forward mode, batching, tensors without values.

Each is a level (`core.modes.Level`) or a wrapper; an op knows none of them.
"""

"""Devices other than the CPU: `absent` (modules such as `torch.cuda`, where nothing is there),
`streams` (events and queues of a device without queues) and `backends` (what is said where an op
has no kernel for one)."""

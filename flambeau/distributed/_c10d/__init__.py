"""The engine below `torch.distributed`: transport, backends, process groups, collectives.

`transport` carries messages; a `Backend` (`gloo`) makes collectives of them, a `ProcessGroup` hands
each call to the backend of the tensors' device. `groups` makes process groups, `world` knows those
that there are; `collectives`, `messages` and `objects` are the functions that users call.
"""

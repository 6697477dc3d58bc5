"""The engine below `torch.distributed`: transport, backends, process groups, collectives.

`transport` carries messages over TCP; a `Backend` (`gloo`, or `mpi` over MPICH) makes collectives
of them, a `ProcessGroup` hands each call to the backend of the tensors' device (`backends` knows
their names). `groups` makes process groups, `world` knows those that there are; `collectives` and
`messages` are the functions that users call. What a backend refuses is in `checks` (the rules) and
`checked` (who applies them); `agreement` compares the processes' calls. A group of one has no
communicator.
"""

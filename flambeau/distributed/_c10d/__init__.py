"""The engine below `torch.distributed`: stores, transport, backends, process groups, collectives.

Processes find each other through `stores` and talk over `transport`; the `backends` make
collectives of messages. A `ProcessGroup` (`process_group`) hands each call, in any of its forms
(`calls`, `options`, `reduce_op`), to the backend of the tensors' device, which answers with `work`.
`groups` makes process groups, `world` knows those that there are. `collectives` and `messages` are
the functions that users call, alone or gathered by `coalescing`; `ops` are the same as ops of the
dispatcher. What is refused is in `checks`, and `refusals` tells the other processes of it; `debug`
says how much is checked and logged. A group of one has no communicator.
"""

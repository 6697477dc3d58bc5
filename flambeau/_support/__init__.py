"""What the package's modules share, whatever they compute.

`lazy` is how names of `torch` come to be imported when they are first asked for, and `devices` what
devices say that are not there or need no queues. `c_functions` and `own_methods` let functions and
classes look as those that PyTorch has in C; `symbolic_names` are the types of its unknown numbers.
`scopes` are changes that hold for a while, `settings` those that hold for the process.
`source_locations` finds the user's lines for errors that come later; `checks` are the conditions
that programs state themselves, `printing` writes tensors as text, `hub_repositories` fetches what
`torch.hub` names.
"""

"""The engine: what every op goes through, and nothing else. It reads as a book, in this order.

1. What an array is. `dtypes` names NumPy's types of elements, `narrow_dtypes` those that no array
has, `promotion` says which type a mixed expression has and `type_info` how far the numbers of a
type reach; `devices` says where elements live, `shapes` how sizes, dimensions and broadcasting
work.

2. What a tensor is. `tensor` is an array with what autograd and aliasing need to know about it.
`views` says what an in-place write means for tensors that share memory (writes are counted by
`_support.source_locations.bump`), `copy_on_write` how storages share it until one is written to.

3. What an op is. `op` is its declaration as data, and the table of all ops. `modes` are what may
happen around a call: modes of the gradient, and levels that take the call over. `late_bound` names
the little of what stands above core that core calls.

4. What a call is: the room `calling`. Whoever overrides it comes first; then the array is computed,
and the call recorded if a gradient may be asked for.

5. What a gradient is: the room `autograd`. Recorded calls are nodes of a graph; the engine goes
through it backwards. Forward mode and batching are not here: they are levels in
`flambeau.transforms`.
"""

"""Collectives as ops of the dispatcher: `dispatcher` (`torch.ops.c10d`, what dispatch modes are
shown) and `functional` (`torch.ops._c10d_functional`, which have gradients)."""

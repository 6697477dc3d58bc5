"""Kernels that look at elements elsewhere, or copy them there: views, indexing, layouts."""

"""Functions that are Python in PyTorch too, and questions about tensors and this build."""

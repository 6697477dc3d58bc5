"""Where PyTorch keeps its jagged nested tensors."""

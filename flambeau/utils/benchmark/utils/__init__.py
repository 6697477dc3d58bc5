"""The parts of `utils.benchmark`, by the names of PyTorch's modules."""

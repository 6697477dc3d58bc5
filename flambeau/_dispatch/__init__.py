"""Switches of PyTorch's dispatcher, under PyTorch's name."""

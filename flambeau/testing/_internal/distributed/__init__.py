"""What tests of distributed programs take from PyTorch's own tests."""

"""What tests of other packages take from PyTorch's own tests."""

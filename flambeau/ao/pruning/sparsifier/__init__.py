"""What decides which elements of tensors are held at zero."""

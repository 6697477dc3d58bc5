"""What `save` and `load` are made of: names in files, options, and a reader that runs no code."""

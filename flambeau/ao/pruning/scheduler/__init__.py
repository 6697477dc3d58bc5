"""What changes the levels of a sparsifier from step to step."""

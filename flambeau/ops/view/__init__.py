"""The same elements in another shape or order, as views or as copies."""

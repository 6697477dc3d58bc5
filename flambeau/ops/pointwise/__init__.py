"""Element by element: arithmetic, elementary functions, comparison, logic, choice."""

"""Parts of tracing that libraries ask for."""

"""What the package's modules share: lazy imports, settings, scopes, places in the user's code."""

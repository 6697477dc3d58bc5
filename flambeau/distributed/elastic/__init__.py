"""What programs under torchelastic use themselves: metrics, and files that say why they failed."""

"""What slides over space: convolutions, pools, padding, resampling, pixels and channels."""

"""Pictures of what holds memory."""

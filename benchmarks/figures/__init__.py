"""Pictures of results, as PNG."""

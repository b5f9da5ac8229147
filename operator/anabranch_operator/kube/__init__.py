"""The operator's way to the API server."""

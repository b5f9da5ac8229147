"""Benchmarks of the operator, on a real API server."""

"""Scan plans: what may be read from the store without brokers, and is kept for it."""

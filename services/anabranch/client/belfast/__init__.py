"""Logs that are read ahead of their order, as programs hold them."""

"""Transports whose messages take longer than they do here: they stand for distance."""

"""Scans in the simulation: who plans them, what plans mean, and both compared."""

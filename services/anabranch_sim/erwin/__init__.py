"""Erwin in simulation: its machines, its clients at the level of messages, faults and mutants."""

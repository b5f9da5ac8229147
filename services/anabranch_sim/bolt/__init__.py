"""Bolt in simulation: a cluster, its clients, faults, the naive model, and mutants."""

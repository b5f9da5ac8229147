"""Figures of Erwin's paper (LazyLog, 6), each on processes of a log."""

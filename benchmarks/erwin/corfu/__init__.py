"""Corfu, the baseline: a position first, then one replica after the other (LazyLog, 2.1 and 6.1;
decision 64). Not a product: it fills no holes and recovers no counter.
"""

"""Anabranch: a shared log that can be forked, read ahead of its order, and appended to cheaply."""

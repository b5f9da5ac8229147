"""Models of protocols, small enough to explore every interleaving."""

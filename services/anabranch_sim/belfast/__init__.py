"""Belfast in simulation: a whole deployment, its clients, and what may befall them."""

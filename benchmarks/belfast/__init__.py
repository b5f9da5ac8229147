"""The figures of Belfast's paper, each against the same code in its free-will mode (Scalog)."""

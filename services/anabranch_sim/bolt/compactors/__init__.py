"""Jobs that copy small extents under an epoch of their own, and ways to get that wrong."""

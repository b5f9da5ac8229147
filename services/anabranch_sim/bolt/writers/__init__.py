"""Stream processors that append with writer marks, and ways to get these wrong."""

"""What Erwin's nodes and clients say to one another, and what all its roles mean by it."""

"""Who is let in, and who may do what: a token all share, or what Kubernetes knows."""

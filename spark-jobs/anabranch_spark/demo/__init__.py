"""`make demo-spark`: a plan is gated on a fork, mended, promoted, and the log is exported."""

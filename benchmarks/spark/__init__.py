"""Spark over logs: what a scan costs, with all of Spark included."""

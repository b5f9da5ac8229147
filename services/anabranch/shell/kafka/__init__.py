"""Kafka as a place to keep records in: topics of a Kafka cluster that somebody else runs."""

"""Apache Kafka: one process that is broker and controller, on loopback."""

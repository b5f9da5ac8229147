"""The paper's own figures (AgileLog, 6), where its text gives them: drawn beside ours.

Measured on ten cores a machine, nine machines of storage, eRPC over 25 Gb/s, in C++: what can be
compared is the shape.
"""

FORK_US = 50.0
"""Figure 5: a fork, whatever the length of its parent."""

FORK_COPY_US = 100_000.0
"""Figure 5: a fork that copies the metadata of 25 million entries."""
FORK_COPY_ENTRIES = 25_000_000

KAFKA_BESIDE_SCAN = 2.5
"""Figure 7a: Kafka's end-to-end latency beside an analysis of the same log, over alone."""
BOLT_BESIDE_SCAN = 1.0

BOLT_WITH_FORKS = 1.0
"""Figures 7b and 8: a root with forks, over the same without: unchanged."""

PROMOTE_US = 100.0
"""Figure 11: tens to hundreds of microseconds; this is the middle of that."""

"""What clients, sequencing replicas and controllers say to one another, and who may say what.

Every other room of the sequencing layer may import it. It imports what a view is and what a ring
holds, because letters carry them.
"""

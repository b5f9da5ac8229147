"""What is a lazy front's alone of SequencerSets: how it tells of itself, what its pods are set to,
and how the Log that it is before comes to have it (ADR 0074).
"""

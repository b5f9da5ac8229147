"""What is Erwin's alone of SequencerSets and ShardGroups: how its log tells of itself, what its
pods are set to, and the conditions of its view (ADR 0061).
"""

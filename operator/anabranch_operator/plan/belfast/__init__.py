"""What is Belfast's alone of SequencerSets and ShardGroups: how its log tells of itself, what its
pods are set to, and the conditions of its windows (ADR 0033).
"""

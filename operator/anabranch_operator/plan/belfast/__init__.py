"""SequencerSets and ShardGroups: their pods, their seats in the log, and what is shown of them (ADR
0033).
"""

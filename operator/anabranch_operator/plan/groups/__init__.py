"""SequencerSets and ShardGroups of any engine: their pods, how the log counts on them, and what is
shown of both (ADR 0033, 0061). Each engine's own rules are in a room beside this one.
"""

"""Journals on disk: segments, snapshots, recovery, reading back; the data directory that holds
them.
"""

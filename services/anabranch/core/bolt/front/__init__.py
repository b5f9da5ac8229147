"""The role before a log that acknowledges: the lazy front of a Bolt log (decision 62).

Its sequencers are replicas of `core/sequencing`, and the leader commits its ring to the log through
any broker. Its controller decides who is a member, and keeps that in the log's own state.
"""

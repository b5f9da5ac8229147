"""A Bolt log with a lazy front in simulation: brokers, metadata and store, and the front's
sequencers and controllers, each in a process of its own.
"""

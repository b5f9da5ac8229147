"""The role that orders: a sequencing replica of an Erwin log, whose leader binds appends to
positions in the background and pushes them to every shard (LazyLog, 4.3 and 5.2; decision 58).
"""

"""The role that decides who is a member of the sequencing layer: which nodes are there, which are
slow, when a view ends and the next one begins (LazyLog, 4.5). Controllers of engines use it.
"""

"""What logs are: the forest of roots and forks, each log's index, the look-up through its
ancestors, and the lazy tail tree (AgileLog, 5.4 to 5.6).

It imports `protocol`; `state` and both roles may import it.
"""

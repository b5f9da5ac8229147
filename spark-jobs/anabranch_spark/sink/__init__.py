"""Writing a log exactly once: under writer marks, or into a fork that commit promotes.

Only the data source and jobs import this package.
"""

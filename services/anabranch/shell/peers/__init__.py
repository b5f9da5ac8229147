"""The network between processes of one cluster: listeners, dialers and the connections between
them.
"""

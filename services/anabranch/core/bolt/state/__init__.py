"""The replicated state of all logs: journal entries in, outcomes out (AgileLog, 5.2).

One module a family of commands, over the forest in `logs`. Both roles may import it; it imports
`logs` and `protocol` only.
"""

"""Programs: what `anabranch up`, the pods and the tools run, put together from shells and machines.

Only the command line imports it.
"""

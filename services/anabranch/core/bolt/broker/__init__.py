"""The role that serves clients: it turns appends into objects, and objects back into records.

`write_path` and `read_path` hold the two ways; here lies what they share, and the machine itself.
Nothing in `metadata` imports it.
"""

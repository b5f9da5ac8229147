"""Decoders: verified batches become Arrow columns, by the project's codec or by compiled code.

`decode.py` beside this room chooses one; nothing else imports them.
"""

"""How a broker takes appends: gathered into an open object, stored, committed, acknowledged.

Used by the broker's machine only.
"""

"""What the sequencing group agrees on: windows, cuts, members and views, and where they put each
record (Belfast, 3.2 and 4).

Every other room of Belfast may import it; it imports none of them.
"""

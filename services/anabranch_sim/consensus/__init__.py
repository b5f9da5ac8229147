"""A consensus group alone in simulation: elections, crashes and disks, thousands of them a minute.

Only `kinds` knows it; it imports `world` and `anabranch.core.consensus`.
"""

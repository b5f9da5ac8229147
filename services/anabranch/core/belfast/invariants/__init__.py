"""What must hold of a Belfast deployment at every step, for tests and simulations.

It imports `ledger` and `protocol`; no role imports it.
"""

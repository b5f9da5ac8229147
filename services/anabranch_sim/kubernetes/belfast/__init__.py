"""A Belfast log among simulated operators: processes, kubelets, users, faults, invariants."""

"""The operator: makes logs, forks and pools be what their resources ask for."""

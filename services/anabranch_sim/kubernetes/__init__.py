"""A Kubernetes without processes, for the operator's machine: API server, log service, a driver."""

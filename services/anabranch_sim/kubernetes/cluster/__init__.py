"""A Kubernetes without processes: API server, controllers, watches, the log service behind it."""

"""Three applications of LazyLog (6.11) on an Erwin log: `python -m examples.erwin`."""

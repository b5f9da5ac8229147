"""Commands that talk to a service as its clients, one module for each or for a family."""

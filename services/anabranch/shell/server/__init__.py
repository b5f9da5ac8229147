"""The port for clients: connections, what they share, and callers inside the process."""

"""Connections below any protocol: dialing hosts with dead addresses, TLS, certificates reloaded."""

"""The Python client. The machine that decides everything is core.py; a driver moves its bytes."""

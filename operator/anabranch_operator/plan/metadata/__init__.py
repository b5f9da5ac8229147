"""Metadata members rolled one at a time, and which pods may be evicted when."""

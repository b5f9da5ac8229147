"""Certificates of an installation: what is wanted, what is there, rotation, inspection."""

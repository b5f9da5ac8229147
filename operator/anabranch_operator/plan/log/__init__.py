"""Logs and Forks: made, served, judged by gates, promoted, squashed, and ended."""

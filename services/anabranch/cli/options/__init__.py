"""Options and arguments that commands share, and what their text means."""

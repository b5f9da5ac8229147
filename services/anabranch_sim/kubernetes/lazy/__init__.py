"""A lazy front among simulated operators: its views, while sequencers come and go."""

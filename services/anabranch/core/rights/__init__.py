"""Who may do what: which rights a request needs, and what is known of who has them."""

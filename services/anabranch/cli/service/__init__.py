"""Which service a command talks to, and the conversation with it; imports the client."""

"""Commands that run servers, or look at what servers have stored; only they import `apps`."""

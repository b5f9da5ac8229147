"""The three applications of Belfast's paper (section 5), each on a database of its own."""

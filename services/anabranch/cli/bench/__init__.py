"""`anabranch bench`: the loads, and the command that runs them."""

"""`anabranch ...`: the command line."""

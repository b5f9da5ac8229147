"""`anabranch demo`: the story that is played, and its stage."""

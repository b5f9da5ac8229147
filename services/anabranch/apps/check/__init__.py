"""`anabranch fsck` and `anabranch recover`: proving stored bytes right, and mending what isn't."""

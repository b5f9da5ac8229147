"""What `anabranch.belfast` is made of: the client of a Belfast deployment."""

"""What people declare: kinds, their fields and conditions, and the CRDs made of them."""

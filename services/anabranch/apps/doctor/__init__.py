"""`anabranch doctor`: what a bug report needs to know of an installation on Kubernetes."""

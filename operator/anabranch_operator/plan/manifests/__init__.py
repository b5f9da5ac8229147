"""Parts of pods that several resources use, and Kubernetes' quantities."""

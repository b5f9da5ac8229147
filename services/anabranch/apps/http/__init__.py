"""The HTTP front: the verbs of the client as REST, subscriptions as server-sent events.

Only who serves HTTP imports this package: FastAPI takes its time to load.
"""

from anabranch.apps.http.app import application, build

__all__ = ["application", "build"]

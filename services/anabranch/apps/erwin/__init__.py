"""Erwin's machines as processes run them: recovered from their journals, with what their probes
and metrics show, and how `anabranch up` embeds them.
"""

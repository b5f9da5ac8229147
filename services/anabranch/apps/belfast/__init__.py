"""Belfast's machines as processes run them: recovered from their journals, with what their probes
and metrics show, and the logs that `anabranch up` embeds. Pods and `up` import it.
"""

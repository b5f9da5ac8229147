"""Lazy fronts of Bolt logs as `anabranch up` embeds them."""

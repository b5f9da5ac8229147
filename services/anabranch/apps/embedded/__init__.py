"""The logs of other engines that `anabranch up` runs beside its Bolt: their folders, how they are
started and stopped, and what becomes of one whose journals are gone. An engine describes itself by
`engine.EmbeddedEngine`; `up` names the engines.
"""

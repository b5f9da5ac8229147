"""What must hold of every letter, answer and append of an Erwin log (E1 to E10), judged by what its
nodes and clients say. It shares no code with the roles that it judges.
"""

"""What all jobs share: the session they start, their report, their exit code, their progress.

Each job is a module or package of its own beside this one; jobs don't import one another.
"""

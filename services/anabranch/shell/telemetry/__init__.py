"""What a process tells its operators: log lines, metrics, traces.

It knows no engine.
"""

"""Values as tables for a terminal.

One module a command, so that a screen in the docs is the output of one function.
Nothing is decided here, and nothing is asked of the API server.
"""

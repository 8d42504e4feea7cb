"""Dead letters: the form in which they are kept, and folders of them.

The driver writes them, the command line reads them, and both take the form from here.
It may not start Spark, and it changes no dead letter.
"""

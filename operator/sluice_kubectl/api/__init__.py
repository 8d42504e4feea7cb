"""The API server, with the kubeconfig and the rights of the person.

Errors become sentences here that say what to do next.
What is read and written stays plain JSON; `views` makes sense of it.
"""

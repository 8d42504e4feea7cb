"""Calls to AWS: signing, kept connections, retries and credentials.

A batch makes many small calls; boto3 costs several times their CPU.
It knows no table and no stream.
"""

"""Our requests are signed as botocore signs its own."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from botocore import auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import ReadOnlyCredentials
from hypothesis import given
from hypothesis import strategies as st

from sluice_checkpoints.aws.connections import host_header
from sluice_checkpoints.aws.signed_http import SignableRequest, signed

NOW = datetime(2026, 11, 22, 23, 59, 59, tzinfo=UTC)
VISIBLE = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=40)
VALUES = st.lists(VISIBLE, min_size=1, max_size=3).map("  ".join)  # blanks within a value are made one where it is signed
CREDENTIALS = st.builds(ReadOnlyCredentials, VISIBLE, VISIBLE, st.none() | VISIBLE)  # with and without a session token
URLS = st.sampled_from(
    [
        "https://kinesis.eu-west-1.amazonaws.com/",
        "http://127.0.0.1:4567/",
        "https://[::1]:8443/",
        "http://[::1]:80/",
        "https://vpce-0.example:443/a//b/../c d/%7e/",
        "https://gateway.example/path/?b=2&a=1&a=0",
    ]
)


@given(url=URLS, kind=VALUES, target=VALUES, body=st.binary(max_size=50), credentials=CREDENTIALS)
def test_headers_are_botocores(url: str, kind: str, target: str, body: bytes, credentials: ReadOnlyCredentials) -> None:
    asked = {"Content-Type": kind, "X-Amz-Target": target}
    theirs = AWSRequest("POST", url, asked, body)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(auth, "get_current_datetime", lambda: NOW)
        auth.SigV4Auth(credentials, "kinesis", "eu-west-1").add_auth(theirs)
        ours = signed(SignableRequest(url, host_header(url), dict(asked), body), credentials, "kinesis", "eu-west-1")
    assert ours == dict(theirs.headers.items())
    assert "20261122/eu-west-1/kinesis/aws4_request" in ours["Authorization"]

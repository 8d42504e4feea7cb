"""What looks like a credential: by the name that it has, and by its form. Pure.

Better a line too much is hidden than a password too little: what follows such a name is hidden to the end of its line.
"""

from __future__ import annotations

import re

HIDDEN = "(hidden by sluice report)"
ANYWHERE = re.compile(
    r"passw|pass.?phrase|pass.?code|pass.?key|(?<!by)(?<!com)(?<!sur)(?<!tres)pass(?![a-z])|pwd|secret|token"
    r"|credential|authorization|cookie|connection.?str|bearer|jwt"
    r"|(?:api|access|private|account|shared|client|master|storage|service|session|security|webhook|hmac|ssh|tls|ssl|admin|host|auth|licen[cs]e"
    r"|subscription|(?:en|de)crypt\w{0,12}|sign(?:ing)?|sse|kms|customer|primary|secondary).?key",
    re.IGNORECASE,
)
WORDS = {"pw", "auth", "cred", "creds", "dsn", "sas", "sig", "signature", "pat", "pin", "otp", "keytab", "kubeconfig", "keystore"}
WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
PRIVATE_KEY = re.compile(r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----.*?(?:-----END [A-Z0-9 ]*PRIVATE KEY-----|\Z)", re.DOTALL)
FORMS = (
    re.compile(r"\b(?:A3T[A-Z0-9]|AKIA|ASIA|ABIA|ACCA|AGPA|AIDA|AROA)[A-Z0-9]{16}\b"),
    re.compile(r"(?<![\w/+.-])(?=[\w/+]*[a-z])(?=[\w/+]*[A-Z])(?=[\w/+]*\d)[A-Za-z0-9/+]{40}(?![\w/+=.-])"),  # an AWS secret key
    re.compile(r"\b(?:gh[a-z]_|github_pat_|glpat-|gldt-|npm_|pypi-|hf_|dapi|dop_v1_|shpat_|sq0[a-z]{3}-|AIza|ya29\.|hvs\.)[\w.-]{16,}"),
    re.compile(r"\b(?:xox[a-z]|xapp)-[\w-]{8,}"),  # Slack
    re.compile(r"(?<=hooks\.slack\.com/)\S+"),
    re.compile(r"\b(?:(?:sk|rk|pk)_(?:live|test)_|whsec_|sk-)[\w-]{8,}"),  # Stripe and others
    re.compile(r"\bSG\.[\w-]{16,}\.[\w-]{16,}"),  # SendGrid
    re.compile(r"\beyJ[\w-]{8,}(?:\.[\w-]*)*"),  # a JSON Web Token
    re.compile(r"(?<![\w+/])[A-Za-z0-9+/]{86}=="),  # a key of Azure
    re.compile(r"(?<=://)\S{0,300}(?=@)"),  # user and password of a URL
    re.compile(r"(?<=\bBasic )\s*\S.*|(?<=\bBASIC )\s*\S.*|(?<=\b[Bb]earer )\s*\S.*|(?<=\bBEARER )\s*\S.*|(?<=\bNegotiate )\s*\S.*"),
)
ASSIGNED = re.compile(r"(?<![\w.$-])(?P<name>[\w.$-]++)\\*+[\"'\]]*\s*(?:=>|[=:>]|%3[dDaA])")
OPTION = re.compile(r"(?<!\S)--?(?P<name>[\w.-]++)\s+(?=\S)")
PROPERTY = re.compile(r"-[DP]")  # of Java, of Gradle
FOLLOWED = re.compile(r"\s*[|>]?[+-]?\s*")  # nothing: YAML has the value on the next line


def is_named_so(name: str) -> bool:
    """Whether a key, an option or an environment variable is named like a credential: `dbPassword`, `MYSQL_PWD`, `fs.azure.account.key.x`."""
    names = (name, PROPERTY.sub("", name))
    return ANYWHERE.search(name) is not None or any(word.lower() in WORDS for each in names for word in WORD.findall(each))


def without_forms(said: str) -> str:
    """The text without what has the form of a token, a key, or a URL with a password."""
    said = PRIVATE_KEY.sub(HIDDEN, said)
    for form in FORMS:
        said = form.sub(HIDDEN, said)
    return said


def without_assigned(lines: str) -> str:
    """The text without what stands behind a name like `password` and `=`, `:` or a space, to the end of the line."""
    found, hides_next = [], False
    for line in lines.split("\n"):
        kept = _kept(line)
        found.append(HIDDEN if hides_next and line.strip() else line if kept is None else line[:kept] + HIDDEN)
        hides_next = kept is not None and FOLLOWED.fullmatch(line[kept:]) is not None
    return "\n".join(found)


def _kept(line: str) -> int | None:
    """How much of the line is before the first value of a credential."""
    ends = (match.end() for pattern in (ASSIGNED, OPTION) for match in pattern.finditer(line) if is_named_so(match["name"]))
    return min(ends, default=None)

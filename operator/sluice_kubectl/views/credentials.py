"""What looks like a credential in free text: by the name before it, and by its form. Pure.

It is better to hide a whole line than to leave a password in it: what follows such a name is hidden to the end of its line.
"""

from __future__ import annotations

import re
from itertools import pairwise

HIDDEN = "(hidden by sluice report)"
ANYWHERE = re.compile(
    r"passw|pass.?phrase|pass.?code|pass.?key|(?<!by)(?<!com)(?<!sur)(?<!tres)pass(?![a-z])|pwd|secret|token"
    r"|credential|authorization|cookie|connection.?str|conn.?str|bearer|jwt|fernet|jaas|kennwort|mot.?de.?passe|contrase|priv.?key|cert.?key"
    r"|(?:api|app|access|private|account|shared|client|consumer|master|storage|service|session|security|webhook|hmac|ssh|tls|ssl|admin|host|auth"
    r"|licen[cs]e|subscription|(?:en|de)crypt\w{0,12}|sign(?:ing)?|sse|kms|customer|primary|secondary|routing|write|read|integration|functions).?key",
    re.IGNORECASE,
)
WORDS = {"pw", "auth", "cred", "creds", "dsn", "sas", "sig", "signature", "pat", "pin", "otp", "keytab", "kubeconfig", "keystore", "salt", "license"}
WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
PRIVATE_KEY = re.compile(
    r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----.*?(?:-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|\Z)"
    r"|\bPuTTY-User-Key-File.*|\bLS0tLS1CRUdJTi[\w+/=]*",
    re.DOTALL,
)
FORMS = (
    re.compile(r"\b(?:A3T[A-Z0-9]|AKIA|ASIA|ABIA|ACCA|AGPA|AIDA|AROA)[A-Z0-9]{16}\b"),
    re.compile(
        r"(?<![A-Za-z0-9/+])(?=[A-Za-z0-9/+]{0,39}[a-z])(?=[A-Za-z0-9/+]{0,39}[A-Z])(?=[A-Za-z0-9/+]{0,39}\d)[A-Za-z0-9/+]{40}(?![\w/+=])"
    ),  # an AWS secret key
    re.compile(
        r"\b(?:gh[a-z]_|github_pat_|gl[a-z]{1,5}t-|gldt-|npm_|pypi-|hf_|dapi|dop_v1_|shpat_|sq0[a-z]{3}-|AIza|ya29\.|hvs\.|dckr_[a-z]+_"
        r"|glsa_|GOCSPX-|ATATT|ATCTT|IQoJ|FwoG|AGE-SECRET-KEY-)[\w+/=.-]{12,}"
    ),
    re.compile(r"\b(?:tskey-|figd_|sntry[su]_|pscale_|lin_api_|xkeysib-|sk-ant-)[\w-]{6,}"),
    re.compile(r"[\w.~-]{3}8Q~[\w.~-]{16,}"),  # Entra ID
    re.compile(r"\b(?:xox[a-z]|xapp)-[\w-]{8,}"),  # Slack
    re.compile(r"(?<=hooks\.slack\.com/)\S+|(?<=/api/webhooks/)\S+|(?<=webhook\.office\.com/)\S+|(?<=/bot)\d+:[\w-]+"),
    re.compile(r"\b(?:(?:sk|rk|pk)_(?:live|test)_|whsec_|sk-)[\w-]{8,}"),  # Stripe and others
    re.compile(r"\bSG\.[\w-]{16,}\.[\w-]{16,}"),  # SendGrid
    re.compile(r"\bs\.[A-Za-z0-9]{24}\b"),  # Vault
    re.compile(r"\beyJ[\w-]{8,}(?:\.[\w-]*)*"),  # a JSON Web Token
    re.compile(r"(?<![\w+/])[A-Za-z0-9+/]{86}=="),  # a key of Azure
    re.compile(r"(?i:\b(?:bearer|negotiate|basic|digest)\b\s+)(?=\S*[A-Z0-9+/=])\S.*|(?<=\bBasic )\s*\S.*|(?<=\b[Bb]earer )\s*\S.*"),
    re.compile(r"(?<=\bBASIC )\s*\S.*|(?<=\bBEARER )\s*\S.*|(?<=\bNegotiate )\s*\S.*|(?<=\bAUTH )\s*\S.*|(?<=[?&]key=)\S+"),
    re.compile(r"(?<=\bredis-cli )(?=.*-a).*|(?<=\bcurl )(?=.*(?:-u|--user)\b).*|(?i:\bidentified by\s+)\S.*"),
    re.compile(r"\b(?:mysql\w{0,16}|sshpass)\s(?:[^\n]{0,400}?\s)?-p.*"),
    re.compile(r"(?<=\bkey=)(?=\w*[a-z])(?=\w*[A-Z])(?=\w*\d)\S+"),
)
SAID = re.compile(  # in prose: `the password is x`, `machine db login u password x`, `PASSWORD 'x'`
    r"(?i:(?:passw(?:or)?d|pass-?phrase|pwd)s?\b[\"']?)(?:\s++(?:is|was|are|to|set|now)\b|\s*+[-=:~]++>?)*+:?\s+"
    r"(?!(?i:in|for|of|the|must|not|was|has|does|and|or|from|is|at|on|by|with|to|failed|required|expired|incorrect|wrong|missing|changed|authentication|auth|policy|reset|hash|file)\b|$)(?P<value>\S.*)"
)
SAID_OF = re.compile(r"(?i:passw(?:or)?ds?\b[^:=\n]{1,40}[:=])\s*(?P<value>\S.*)")  # `Password for user bob: x`
MIXED = re.compile(  # `the token is x`, `client secret x`: a word of characters and digits
    r"(?i:(?:secret|token|credentials?|pass|(?:api|app|access|private|client|shared|account)[ _-]?key)\b)(?i:\s+(?:is|was|of|to|set|now))*\s+"
    r"(?P<value>[\"']?(?=[\w+/=!#$%^&*]{0,40}[A-Z])(?=[\w+/=!#$%^&*]{0,40}[a-z])(?=[\w+/=!#$%^&*]{0,40}\d)[\w+/=!#$%^&*]{6,}(?![\w-]).*)"
)
SPACED = re.compile(
    r"(?i:\b(?:api|app|access|private|client|shared|account|secret|pass|auth)[ ](?:key|secret|token|word|phrase|id)s?\s*[=:])(?P<value>.*)"
)
USER = re.compile(r"(?<![^\s\"'<>])[^\s\"'<>]+@[^\s\"'<>]+")
AFTER = re.compile(r".*?(?:://|thin:)", re.DOTALL)
ASSIGNED = re.compile(r"(?<![\w.$-])(?P<name>[\w.$-]++)\\*+[\"'\]]*\s*(?:=>|->|:=|[=:>\u2236\ua789\u2192\u21d2]|%3[dDaA])")
QUOTED = re.compile(r"(?:[\"'>])(?P<name>[\w.$-]++)\\*(?:[\"']\s*(?:[,)]|[\w-]+\s*[=:])|</\w+>\s*<|</\w+>$)")
BARE = re.compile(r"[(\[{]\s*(?P<name>[\w.$-]++)\s*,")
CALLED = re.compile(r"(?<![\w.$-])(?P<name>[\w.$-]++)\((?!\)|[\w$]+\.(?:java|scala|kt|py)\b|Unknown|Native)")  # no line of a stack trace
OPTION = re.compile(r"(?<!\S)--?(?P<name>[\w.-]++)\s+(?=\S)")
ALONE = re.compile(r"\s*[\w.$-]+\s*")
PROPERTY = re.compile(r"-[DP]")  # of Java, of Gradle
HARMLESS = re.compile(r"sha256:[0-9a-f]{64}|containerd://[0-9a-f]{64}|\bspark-[0-9a-f]{32}")
RUN = re.compile(r"[A-Za-z0-9]{20,}")
LONG_RUN = re.compile(r"[A-Za-z0-9+/_=-]{32,}")


def is_named_so(name: str) -> bool:
    """Whether a key, an option or an environment variable is named like a credential: `dbPassword`, `MYSQL_PWD`, `fs.azure.account.key.x`."""
    names = (name, PROPERTY.sub("", name))
    return ANYWHERE.search(name) is not None or any(word.lower() in WORDS for each in names for word in WORD.findall(each))


def without_forms(said: str) -> str:
    """The text without what has the form of a token, a key, or a URL with a password; and without tokens that look random."""
    said = PRIVATE_KEY.sub(HIDDEN, said)
    for form in FORMS:
        said = form.sub(HIDDEN, said)
    return _without_random(USER.sub(_without_user, said))


def kept_of(line: str) -> int | None:
    """How many characters of the line are before the first value of a credential; None: it names none."""
    if is_named_so(line) and ALONE.fullmatch(line):
        return len(line)
    patterns = (ASSIGNED, OPTION, QUOTED, BARE, CALLED)
    ends = [match.end() for pattern in patterns for match in pattern.finditer(line) if is_named_so(match["name"])]
    ends += [match.start("value") for pattern in (SAID, SAID_OF, MIXED, SPACED) for match in pattern.finditer(line)]
    return min(ends, default=None)


def _without_user(found: re.Match[str]) -> str:
    """`scheme://user:password@host`, `user/password@host`. An image with its digest has no user."""
    said = found[0]
    user, _, host = said.rpartition("@")
    if host.startswith("sha256:") or not re.search(r"[:/]", user):
        return said
    begin = AFTER.match(user)
    return f"{begin[0] if begin else ''}{HIDDEN}@{host}"


def _without_random(said: str) -> str:
    """A token of 20 characters and more that mixes classes as no word does; names of classes, digests and uids are none."""
    kept = [match.span() for match in HARMLESS.finditer(said)]

    def hide(found: re.Match[str]) -> str:
        if any(begin <= found.start() and found.end() <= end for begin, end in kept):
            return found[0]
        return HIDDEN if is_random(found[0]) else found[0]

    if not kept:
        said = LONG_RUN.sub(lambda found: HIDDEN if _is_base64(found[0]) else found[0], said)
    return RUN.sub(hide, said)


def is_random(word: str) -> bool:
    """Whether digits and other characters alternate as in no name: `AbstractS3ACommitterFactory` changes its class 7 times in 27 characters."""
    if not re.search(r"\d", word) or not re.search(r"[A-Za-z]", word):
        return False
    return len(re.findall(r"\d", word)) >= 4 or _changes(word) >= 0.4 * len(word)


def _is_base64(word: str) -> bool:
    mixed = all(re.search(part, word) for part in (r"[a-z]", r"[A-Z]", r"\d"))
    return mixed and _changes(word) >= 0.4 * len(word)


def _changes(word: str) -> int:
    kinds = [char.isdigit() + 2 * char.isupper() + 3 * char.islower() for char in word]
    return sum(one != other for one, other in pairwise(kinds))

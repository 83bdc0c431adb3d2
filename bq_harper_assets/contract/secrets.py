"""What counts as a secret, and how text is shown without it."""

import re

HIDDEN = "***"
_SECRET_WORDS = re.compile(
    r"pass(word|wd|phrase)?$|secret|token|api_?key|private_?key", re.IGNORECASE
)
_IN_URL = re.compile(r"(?<=://)[^\s]*@")
_IN_QUERY = re.compile(r"((?:password|passwd|secret|token|sslpassword)=)[^&\s]*", re.IGNORECASE)
_REFERENCE = re.compile(r"(?<!\$)\$\{[A-Za-z_][A-Za-z0-9_]*(?::-([^}]*))?\}")


def is_secret_name(name: str) -> bool:
    """True for names whose value is never shown: password, token, spark.x.secret.key."""
    return _SECRET_WORDS.search(name) is not None


def without_secrets(text: str) -> str:
    """URLs lose their user and password, query strings their passwords."""
    return _IN_QUERY.sub(rf"\1{HIDDEN}", _IN_URL.sub(f"{HIDDEN}@", text))


def literal_part(raw: str) -> str:
    """What the file itself says: variables taken out, their defaults left in."""
    return _REFERENCE.sub(lambda match: match[1] or "", raw)


def password_in_url(text: str) -> bool:
    """True if the URL carries a password before its @ or among its parameters."""
    userinfo = _IN_URL.search(text)
    if userinfo and userinfo[0].rstrip("@").partition(":")[2]:
        return True
    return any(match[0].partition("=")[2] for match in _IN_QUERY.finditer(text))

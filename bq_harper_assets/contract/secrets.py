"""Secrets are recognised by name and by form, and text is shown without them."""

import re

HIDDEN = "***"
_SECRET_WORDS = re.compile(
    r"pass(word|wd|phrase)?$|pwd$|secret|token|(api|private|account)[._-]?key", re.IGNORECASE
)
_IN_URL = re.compile(r"(?<=://)[^\s]*@")
_IN_QUERY = re.compile(r"((?:password|passwd|pwd|secret|token)=)([^&\s]*)", re.IGNORECASE)
# A value is a URL or the like as a whole, so a space in it does not end the password.
_IN_URL_VALUE = re.compile(r"(?<=://).*@", re.DOTALL)
_IN_HOST_VALUE = re.compile(r"^[^\s/@]*:[^/]*@")
_IN_VALUE = re.compile(r"((?:password|passwd|pwd|secret|token)\s*[=:]\s*)[^&]+", re.IGNORECASE)
# A service account's key where its file should be named: JSON, PEM, or either in base64.
_KEY_ITSELF = re.compile(r"\s*\{.*|.*-----BEGIN.*|[A-Za-z0-9+/=\s]{300,}", re.DOTALL)
_REFERENCE = re.compile(r"(?<!\$)\$\{[A-Za-z_][A-Za-z0-9_]*(?::-([^}]*))?\}")


def is_secret_name(name: str) -> bool:
    """Says whether the value of that name is never shown: password, token, spark.x.secret.key."""
    return _SECRET_WORDS.search(name) is not None


def without_secrets(text: str) -> str:
    """Hides user and password of URLs in prose, and the passwords in their query strings."""
    return _IN_QUERY.sub(rf"\1{HIDDEN}", _IN_URL.sub(f"{HIDDEN}@", text))


def value_without_secrets(value: str) -> str:
    """Hides secrets in a value, and more of it than of prose, where words must stay readable."""
    if is_key_itself(value):
        return HIDDEN
    for userinfo in (_IN_URL_VALUE, _IN_HOST_VALUE):
        value = userinfo.sub(f"{HIDDEN}@", value)
    return _IN_VALUE.sub(rf"\1{HIDDEN}", value)


def is_key_itself(text: str) -> bool:
    """Says whether the text is not the path of a key file but the content of one."""
    return _KEY_ITSELF.fullmatch(text) is not None


def literal_part(raw: str) -> str:
    """Returns what the file itself says: it takes variables out and leaves their defaults in."""
    return _REFERENCE.sub(lambda match: match[1] or "", raw)


def password_in_url(text: str) -> bool:
    """Says whether the URL carries a password before its @ or among its parameters."""
    userinfo = _IN_URL_VALUE.search(text)
    if userinfo and userinfo[0].rstrip("@").partition(":")[2].strip():
        return True
    return any(match[2] for match in _IN_QUERY.finditer(text))

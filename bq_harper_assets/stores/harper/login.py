"""Logs in to a Harper, and makes sure that nobody else can read the password."""

import base64
from dataclasses import dataclass
from urllib.parse import urlsplit

from bq_harper_assets.contract.connections import HarperConnection
from bq_harper_assets.contract.secrets import HIDDEN, without_secrets
from bq_harper_assets.contract.settings.urls import HARPER_URL, is_loopback
from bq_harper_assets.retries.retry import Call
from bq_harper_assets.stores.harper.errors import HarperUnsafe

LONGEST_QUOTE = 500


@dataclass(frozen=True, repr=False, kw_only=True)
class Login:
    """A login is an address that is safe to send to, and the header that logs in."""

    url: str
    store: str  # the address, as errors name it
    who: str  # such as "user 'admin'" or "the token"
    header: str
    secrets: tuple[str, ...]

    def quote(self, text: str) -> str:
        """Quotes a server's words on one line, without our secrets, which it may echo."""
        for secret in self.secrets:
            text = text.replace(secret, HIDDEN)
        text = " ".join(without_secrets(text).split())
        return text if len(text) <= LONGEST_QUOTE else f"{text[:LONGEST_QUOTE]}..."


def login_to(connection: HarperConnection) -> Login:
    """Makes the login; raises HarperUnsafe if somebody could read the password on its way."""
    store = f"Harper at {without_secrets(connection.url)}"
    header = _header(connection, store)
    token = connection.token.get_secret_value() if connection.token else ""
    secrets = (header.partition(" ")[2], connection.password.get_secret_value(), token)
    return Login(
        url=_url(connection, store),
        store=store,
        who="the token" if connection.token else f"user {connection.user!r}",
        header=header,
        secrets=tuple(secret for secret in secrets if secret),
    )


def _url(connection: HarperConnection, store: str) -> str:
    try:
        url: str = HARPER_URL.parse(connection.url)
    except ValueError as error:
        raise HarperUnsafe(Call(store, "connect"), f"has an address that {error}") from None
    if urlsplit(url).scheme == "http" and not is_loopback(url) and not connection.allow_http:
        raise HarperUnsafe(
            Call(store, "connect"),
            "is on another machine and without TLS, and allowHttp (allow_http) is not set",
        )
    return url


def _header(connection: HarperConnection, store: str) -> str:
    token = connection.token.get_secret_value() if connection.token else None
    if token is None:
        pair = f"{connection.user}:{connection.password.get_secret_value()}"
        # Harper reads it as Latin-1. A library's own error would quote what it cannot send.
        if all(ord(character) < 256 for character in pair):
            return "Basic " + base64.b64encode(pair.encode("latin-1")).decode("ascii")
        what = "a user or password with characters beyond Latin-1, which only a token can replace"
    else:
        if token.isascii() and token.isprintable() and " " not in token:
            return f"Bearer {token}"
        what = "a token that no header can carry"
    raise HarperUnsafe(Call(store, "connect"), f"was given {what}")

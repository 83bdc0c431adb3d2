"""Checks whether we can work with a Harper: address, login and rights. It writes nothing."""

import os

import requests

from bq_harper_assets.contract.connections import HarperConnection
from bq_harper_assets.stores.finding import Finding
from bq_harper_assets.stores.harper.client import DATABASE
from bq_harper_assets.stores.harper.errors import HarperUnsafe
from bq_harper_assets.stores.harper.login import login_to

_TIMEOUT_S = 10.0
_REACH = "harper: reach"
_OWN_TROUBLE, _TOO_MANY = 500, 429  # statuses of servers and gateways that may do better later


def probe_harper(connection: HarperConnection) -> list[Finding]:
    """Returns the findings in a useful order, and stops where the next ones would be pointless."""
    with _session() as session:
        reached = _reach(session, connection)
        if reached.verdict == "fail":
            return [reached]
        try:
            answer = _ask_who(session, connection, _TIMEOUT_S)
        except HarperUnsafe as error:
            return [reached, Finding("harper: log in", "fail", str(error))]
    return [reached, *_login(answer, connection)]


def lasting_refusal(connection: HarperConnection, within_s: float) -> Finding | None:
    """Returns why no request to this address will ever be answered well; None if it may be.

    A Harper that is silent or busy may answer the next request: that is no reason.
    """
    with _session() as session:
        try:
            answer = _ask_who(session, connection, within_s)
            if _may_heal(answer) or (answer.status_code == 200 and _permission(answer) is not None):
                return None
            # What is no Operations API refuses a login as well.
            health = _health(session, connection, within_s)
        except requests.exceptions.SSLError as error:
            return _untrusted(connection, error)
        except requests.exceptions.RequestException:
            return None
    reached = _reached(health, connection)
    if reached.verdict == "fail":
        return None if _may_heal(health) else reached
    return _login(answer, connection)[0] if answer.status_code == 401 else None


def _may_heal(answer: requests.Response) -> bool:
    return answer.status_code >= _OWN_TROUBLE or answer.status_code == _TOO_MANY


def _session() -> requests.Session:
    session = requests.Session()
    session.trust_env = False  # a proxy or a .netrc must not answer in Harper's place
    session.verify = os.environ.get("REQUESTS_CA_BUNDLE", True)
    return session


def _ask_who(
    session: requests.Session, connection: HarperConnection, within_s: float
) -> requests.Response:
    return session.post(
        connection.url,
        json={"operation": "user_info"},
        headers={"Authorization": login_to(connection).header},
        timeout=within_s,
        allow_redirects=False,
    )


def _health(
    session: requests.Session, connection: HarperConnection, within_s: float
) -> requests.Response:
    url = f"{connection.url.rstrip('/')}/health"
    return session.get(url, timeout=within_s, allow_redirects=False)


def _untrusted(connection: HarperConnection, error: requests.exceptions.SSLError) -> Finding:
    return Finding(
        _REACH,
        "fail",
        f"the certificate of {connection.url} is not trusted: {error}",
        "use a certificate of a known authority, or set REQUESTS_CA_BUNDLE to your own",
    )


def _reach(session: requests.Session, connection: HarperConnection) -> Finding:
    try:
        return _reached(_health(session, connection, _TIMEOUT_S), connection)
    except requests.exceptions.SSLError as error:
        return _untrusted(connection, error)
    except requests.exceptions.RequestException as error:
        return Finding(
            _REACH,
            "fail",
            f"nothing answers at {connection.url} ({type(error).__name__})",
            "start the local stack with `bqh up`, or set OPERATIONSAPI_URL to your own Harper",
        )


def _reached(answer: requests.Response, connection: HarperConnection) -> Finding:
    subject, url = _REACH, connection.url
    if answer.status_code == 200 and "running" in answer.text:
        return Finding(subject, "ok", f"the Operations API answers at {url}")
    if "harper" in answer.headers.get("Server", "").lower():
        return Finding(
            subject,
            "fail",
            f"{url} is a Harper, but not its Operations API (the REST port, perhaps)",
            "set OPERATIONSAPI_URL to the Operations API; its port is 9925 unless changed",
        )
    return Finding(
        subject,
        "fail",
        f"{url} answers, but it is not a Harper (status {answer.status_code})",
        "set OPERATIONSAPI_URL to Harper's Operations API; its port is 9925 unless changed",
    )


def _login(answer: requests.Response, connection: HarperConnection) -> list[Finding]:
    subject, who = "harper: log in", f"user {connection.user!r} at {connection.url}"
    if answer.status_code == 401:
        wrong = f"the password of {who} is wrong, or there is no such user"
        next_step = "set OPERATIONSAPI_USER and OPERATIONSAPI_PASS"
        if connection.token is not None:
            wrong, next_step = f"the token for {connection.url} is wrong or has run out", "renew it"
        return [Finding(subject, "fail", wrong, next_step)]
    if answer.status_code != 200:
        return [
            Finding(
                subject,
                "fail",
                f"{who} is refused with status {answer.status_code}",
                "look at Harper's own log",
            )
        ]
    permission = _permission(answer) or {}
    return [Finding(subject, "ok", f"logged in as {who}"), _rights(permission, connection.user)]


def _permission(answer: requests.Response) -> dict[str, object] | None:
    """Returns what the user's role may do; None if the answer is not Harper's."""
    try:
        permission = answer.json()["role"]["permission"]
    except (ValueError, KeyError, TypeError):
        return None
    return permission if isinstance(permission, dict) else None


def _rights(permission: dict[str, object], user: str) -> Finding:
    subject = "harper: rights"
    if permission.get("super_user"):
        return Finding(
            subject,
            "warn",
            f"{user!r} is a super_user: it works, and may do far more than it needs",
            f'outside a laptop, use a role with "structure_user": ["{DATABASE}"] and its tables',
        )
    structure = permission.get("structure_user")
    if structure is True or (isinstance(structure, list) and DATABASE in structure):
        return Finding(subject, "ok", f"{user!r} may create tables in database {DATABASE!r}")
    return Finding(
        subject,
        "fail",
        f"{user!r} may not create tables in database {DATABASE!r}",
        f'give its role "structure_user": ["{DATABASE}"], or create the tables beforehand',
    )

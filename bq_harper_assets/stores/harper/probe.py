"""Checks whether we can work with a Harper: address, login and rights. It writes nothing."""

import os

import requests

from bq_harper_assets.contract.connections import HarperConnection
from bq_harper_assets.stores.finding import Finding
from bq_harper_assets.stores.harper.client import DATABASE

_TIMEOUT_S = 10


def probe_harper(connection: HarperConnection) -> list[Finding]:
    """Returns the findings in a useful order, and stops where the next ones would be pointless."""
    with requests.Session() as session:
        session.trust_env = False  # a proxy or a .netrc must not answer in Harper's place
        session.verify = os.environ.get("REQUESTS_CA_BUNDLE", True)
        reached = _reach(session, connection)
        if reached.verdict == "fail":
            return [reached]
        answer = session.post(
            connection.url,
            json={"operation": "user_info"},
            auth=(connection.user, connection.password.get_secret_value()),
            timeout=_TIMEOUT_S,
            allow_redirects=False,
        )
    return [reached, *_login(answer, connection)]


def _reach(session: requests.Session, connection: HarperConnection) -> Finding:
    subject, url = "harper: reach", connection.url
    try:
        answer = session.get(f"{url.rstrip('/')}/health", timeout=_TIMEOUT_S, allow_redirects=False)
    except requests.exceptions.SSLError as error:
        return Finding(
            subject,
            "fail",
            f"the certificate of {url} is not trusted: {error}",
            "use a certificate of a known authority, or set REQUESTS_CA_BUNDLE to your own",
        )
    except requests.exceptions.RequestException as error:
        return Finding(
            subject,
            "fail",
            f"nothing answers at {url} ({type(error).__name__})",
            "start the local stack with `bqh up`, or set OPERATIONSAPI_URL to your own Harper",
        )
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
        return [
            Finding(
                subject,
                "fail",
                f"the password of {who} is wrong, or there is no such user",
                "set OPERATIONSAPI_USER and OPERATIONSAPI_PASS",
            )
        ]
    if answer.status_code != 200:
        return [
            Finding(
                subject,
                "fail",
                f"{who} is refused with status {answer.status_code}",
                "look at Harper's own log",
            )
        ]
    permission = answer.json().get("role", {}).get("permission", {})
    return [Finding(subject, "ok", f"logged in as {who}"), _rights(permission, connection.user)]


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

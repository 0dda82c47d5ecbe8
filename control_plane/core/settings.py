"""The control plane's settings, read at its entry: addresses, the database, the broker, the master key."""

from __future__ import annotations

import ipaddress
import re
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pydantic import Field, ValidationError, ValidationInfo, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from control_plane.core.mail_server import is_sender, read_mail_url
from control_plane.core.trace_receiver import receiver_headers, traces_url
from shared.errors import Invalid

_BUCKET = re.compile(r"s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/[A-Za-z0-9!_.*'()/-]*)?")
_HOST_NAME = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_])?")


KEPT = (
    "keep_steps_days",
    "keep_logs_days",
    "keep_work_days",
    "keep_services_days",
    "keep_readings_days",
    "keep_raw_events_days",
    "blob_limit_mb",
    "audit_days",
)
"""The settings of the retention."""


class FleetSettings(BaseSettings):
    """`FLEET_*` of the environment; constructor arguments take precedence. Read once, passed down."""

    model_config = SettingsConfigDict(env_prefix="FLEET_", extra="ignore", frozen=True)

    database_url: str = Field(repr=False)
    """`sqlite:////absolute/path.db` or `postgresql://user:password@host/name`."""
    broker_url: str = Field(repr=False)
    """`redis://control:PASSWORD@host:port/0`: the control plane's own user."""
    master_key_file: Path | None = None
    """32 bytes in base64; written on first use if the file does not exist."""
    master_key: str | None = Field(None, repr=False)
    """The same key as a value; takes precedence over the file."""
    blob_dir: Path
    """Patches, bundles and logs; with `blob_store`, temporary files of these."""
    blob_store: str | None = None
    """`s3://BUCKET` or `s3://BUCKET/PREFIX`, for patches, bundles and logs; None: `blob_dir`."""
    s3_endpoint: str | None = None
    """The URL of the S3-compatible server; None: that of AWS."""
    s3_region: str | None = None
    """None: `AWS_REGION`, or what the AWS configuration of this machine says."""
    s3_access_key_id: str | None = None
    """None: the usual variables and files of AWS, or the role of the machine."""
    s3_secret_access_key: str | None = Field(None, repr=False, validate_default=True)
    s3_path_style: bool = False
    """Whether the bucket is in the path of a URL, and not in its host name."""
    host: str = "127.0.0.1"
    port: int = Field(8420, ge=0, le=65535)
    public_url: str | None = None
    """The address of the HTTP interface for drones and browsers."""
    public_broker_url: str | None = None
    """The address of the broker for drones, without a user."""
    tls_cert_file: Path | None = None
    """The certificate of the HTTP interface and of Flower, with its chain, in PEM form; None: plain HTTP."""
    tls_key_file: Path | None = Field(None, validate_default=True)
    """The certificate's key, without a password."""
    ca_file: Path | None = None
    """Authorities that the broker's certificate may come from, besides the machine's."""
    shared_broker_login: str | None = Field(None, repr=False)
    """`USER:PASSWORD` of all drones, for a broker on which no users can be created; weaker than users of their own."""
    drone_broker_mb: int = Field(128, ge=96)
    """What one drone's keys may hold of the broker's memory, in MiB. Honest drones pause at 64."""
    flower_url: str | None = None
    """The address of a Flower with a log-in of its own; pages link to it unless `flower_upstream` is set."""
    flower_upstream: str | None = None
    """Where Flower listens, on this machine, for requests of this control plane, which serves it at `/flower`."""
    flower_password: str = Field("", repr=False)
    """Flower's password, with which the control plane logs in to it."""
    allow_file_urls: bool | None = None
    """Whether a project's git URL may be `file://`; None: only while `host` is a loopback address."""

    webhook_private: bool = False
    """Whether webhooks may be sent to addresses inside the network: loopback, private, link-local."""

    smtp_url: str | None = Field(None, repr=False)
    """The mail server, `smtp://USER:PASSWORD@HOST:587`; None: no e-mail is sent. See `core.mail_server`."""
    mail_from: str = "dronefleet@localhost"
    """The sender of e-mail: an address, or `Name <address>`."""

    audit_days: int | None = 365
    """How long records of the audit log are kept; None: for ever."""

    metrics_token: str | None = Field(None, repr=False, min_length=16)
    """What Prometheus sends as a bearer token to read `/metrics`; None: there are no metrics."""

    otlp_endpoint: str | None = None
    """The receiver of traces, `http://HOST:4318`; None: no traces are sent. See `core.trace_receiver`."""
    otlp_headers: str = Field("", repr=False)
    """`name=value,name=value`, sent to the receiver with every request."""

    keep_steps_days: int | None = 365
    """How long the steps of an order are kept after its session was last used; None, as in the next ones: for ever."""
    keep_logs_days: int | None = 90
    """How long the outputs of an order's calls are kept after it ended."""
    keep_work_days: int | None = 180
    """How long patches and bundles are kept after their session was last used."""
    keep_services_days: int | None = 30
    """How long orders of the control plane itself are kept that cost nothing: checks, pushes, pull requests."""
    keep_readings_days: int | None = 7
    """How long readings of code hosts are kept."""
    keep_raw_events_days: int | None = 30
    """How long reports of drones are kept that could not be processed."""
    blob_limit_mb: int | None = None
    """What patches, bundles and logs may hold in all, in MiB; above it, the oldest are removed early."""

    session_titles: bool = True
    """Whether a model writes a title for each session without a name, which costs one small model call."""

    allowed_hosts: str = ""
    """Further names, separated by commas, under which browsers and programs reach the HTTP interface."""

    trusted_proxies: str = ""
    """Addresses or networks, separated by commas. Only of these is it believed for whom they forward a request."""

    oidc_issuer: str | None = None
    """The OpenID Connect provider that people log in with: its issuer, exactly as its metadata names it."""
    oidc_client_id: str | None = None
    oidc_client_secret: str | None = Field(None, repr=False)
    """None: a public client, protected by PKCE alone."""
    oidc_organization: str = "default"
    """The organization of the sessions; its users were added with `fleet user add`."""

    @field_validator(*KEPT, mode="before")
    @classmethod
    def _is_kept_for_a_time(cls, given: object) -> object:
        """A number from 1 on, or `unlimited`, also if it is empty. 0 would remove all that there is."""
        if given in {None, "", "unlimited"}:
            return None
        if isinstance(given, bool) or not str(given).strip().isdigit() or int(str(given)) < 1:
            raise ValueError("expected a whole number from 1 on, or unlimited; 0 would remove everything")
        return given

    @field_validator("otlp_endpoint")
    @classmethod
    def _is_a_receiver(cls, endpoint: str | None) -> str | None:
        if endpoint:
            traces_url(endpoint)
        return endpoint or None

    @field_validator("otlp_headers")
    @classmethod
    def _are_headers(cls, headers: str, info: ValidationInfo) -> str:
        # Without a valid endpoint there is a complaint about that already.
        if receiver_headers(headers) and info.data.get("otlp_endpoint", "") is None:
            raise ValueError("it requires FLEET_OTLP_ENDPOINT")
        return headers

    @field_validator("blob_store")
    @classmethod
    def _is_a_bucket(cls, store: str | None) -> str | None:
        if store and not _BUCKET.fullmatch(store):
            raise ValueError("expected s3://BUCKET or s3://BUCKET/PREFIX")
        return store or None

    @field_validator("s3_endpoint")
    @classmethod
    def _is_an_address(cls, endpoint: str | None) -> str | None:
        if endpoint and not (urlsplit(endpoint).scheme in {"http", "https"} and urlsplit(endpoint).hostname):
            raise ValueError("expected http://HOST:PORT or https://HOST")
        return endpoint or None

    @field_validator("s3_secret_access_key")
    @classmethod
    def _belongs_to_an_access_key(cls, secret: str | None, info: ValidationInfo) -> str | None:
        if bool(secret) != bool(info.data.get("s3_access_key_id")):
            raise ValueError("an access key id and its secret require each other")
        return secret or None

    @field_validator("public_url")
    @classmethod
    def _is_at_the_root(cls, url: str | None) -> str | None:
        if url and (problem := public_url_problem(url)):
            raise ValueError(problem)
        return url

    @field_validator("flower_upstream")
    @classmethod
    def _is_on_this_machine(cls, upstream: str | None) -> str | None:
        parts = urlsplit(upstream or "")
        if upstream and not (parts.scheme == "http" and is_loopback(parts.hostname or "")):
            raise ValueError("expected http://127.0.0.1:PORT: Flower's password must not leave this machine")
        return upstream

    @field_validator("oidc_issuer")
    @classmethod
    def _is_protected(cls, issuer: str | None) -> str | None:
        parts = urlsplit(issuer or "https://none")
        if parts.scheme != "https" and not (parts.scheme == "http" and is_loopback(parts.hostname or "")):
            raise ValueError("it must begin with https://, except on loopback")
        return issuer

    @field_validator("smtp_url")
    @classmethod
    def _is_a_mail_server(cls, url: str | None) -> str | None:
        if url:
            read_mail_url(url)
        return url or None

    @field_validator("mail_from")
    @classmethod
    def _is_a_sender(cls, sender: str) -> str:
        if not is_sender(sender):
            raise ValueError("expected one address, as name@example.org or Name <name@example.org>")
        return sender

    @field_validator("allowed_hosts")
    @classmethod
    def _are_names(cls, hosts: str) -> str:
        for each in hosts.split(",") if hosts else ():
            if not _HOST_NAME.fullmatch(each.strip()):
                raise ValueError("expected names of hosts, without scheme and port, separated by commas")
        return hosts

    @property
    def allowed_host_names(self) -> frozenset[str]:
        """`allowed_hosts`, in lower case."""
        return frozenset(each.strip().lower() for each in self.allowed_hosts.split(",") if each)

    @field_validator("trusted_proxies")
    @classmethod
    def _are_networks(cls, proxies: str) -> str:
        for each in proxies.split(",") if proxies else ():
            ipaddress.ip_network(each.strip())
        return proxies

    @field_validator("shared_broker_login")
    @classmethod
    def _has_a_password(cls, login: str | None) -> str | None:
        if login is not None and not all(login.partition(":")):
            raise ValueError("expected USER:PASSWORD; the user is `default` if the broker has only a password")
        return login

    @property
    def drones_login(self) -> tuple[str, str] | None:
        """User and password that all drones share at the broker; None: each has its own."""
        if self.shared_broker_login is None:
            return None
        user, _, password = self.shared_broker_login.partition(":")
        return user, password

    @field_validator("tls_key_file")
    @classmethod
    def _belongs_to_a_certificate(cls, key: Path | None, info: ValidationInfo) -> Path | None:
        if (key is None) != (info.data.get("tls_cert_file") is None):
            raise ValueError("a certificate and its key require each other")
        return key

    @property
    def tls_files(self) -> tuple[Path, Path] | None:
        """The files of the certificate and its key; None: the HTTP interface is not encrypted."""
        if self.tls_cert_file is None or self.tls_key_file is None:
            return None
        return self.tls_cert_file, self.tls_key_file

    @property
    def url(self) -> str:
        """The URL of the HTTP interface, without a trailing slash."""
        scheme = "https" if self.tls_files else "http"
        return (self.public_url or f"{scheme}://{_bracketed(self.host)}:{self.port}").rstrip("/")

    @property
    def file_urls_allowed(self) -> bool:
        """A `file://` URL names a file on the drone: harmless if both are one machine, a security hole if not."""
        return is_loopback(self.host) if self.allow_file_urls is None else self.allow_file_urls


def read_settings(**given: Any) -> FleetSettings:
    """The settings from the environment; `given` takes precedence.

    Raises Invalid, which names every missing or wrong variable and never shows a value.
    """
    try:
        return FleetSettings(**given)
    except ValidationError as error:
        wrong = [
            f"FLEET_{str(each['loc'][0]).upper()}: {each['msg'].lower()}" for each in error.errors() if each["loc"]
        ]
        raise Invalid(
            f"missing or invalid settings: {'; '.join(wrong)}",
            code="E-SETTINGS",
            next="set these variables, or run a local fleet with: fleet up",
        ) from None


def public_url_problem(url: str) -> str:
    """Why a control plane cannot be reached at this URL; empty if it can."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        return "it is not a URL; expected http://HOST or https://HOST, with or without a port"
    if parts.scheme not in {"http", "https"} or not host:
        return "expected http://HOST or https://HOST, with or without a port"
    if parts.path.strip("/") or parts.query or parts.fragment:
        # Links, redirects, cookies and the drones' interface would all have to know the path, behind any proxy.
        return f"pages and interface are at the root of a host, not below a path such as {parts.path}; use another name"
    return ""


def is_loopback(host: str) -> bool:
    """Whether `host` names this machine alone."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host

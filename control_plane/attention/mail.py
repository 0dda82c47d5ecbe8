"""E-mail: a message as plain text and minimal HTML, handed over to the mail server of FLEET_SMTP_URL."""

from __future__ import annotations

import smtplib
import ssl
from collections.abc import Iterator
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime, parseaddr
from html import escape

from control_plane.attention.contents import Item, MessageContent
from control_plane.attention.sending import SECONDS, SendResult
from control_plane.core import Core
from control_plane.core.mail_server import MailServer, read_mail_url
from control_plane.db.attention import AttentionMessage
from shared.terminal.command_line import version

_PERMANENT = 500


def send_mail(core: Core, message: AttentionMessage, address: str, content: MessageContent) -> SendResult:
    """Hand the message over. Every failure is reported in the result, without the server's password."""
    if core.settings.smtp_url is None:
        return SendResult("this server cannot send e-mail: FLEET_SMTP_URL is not set", final=True)
    try:
        email = compose(core, message, address, content)
        with _connected(read_mail_url(core.settings.smtp_url)) as server:
            server.send_message(email)
    except smtplib.SMTPRecipientsRefused as error:
        code, said = next(iter(error.recipients.values()))
        return SendResult(_words(code, said), final=code >= _PERMANENT)
    except smtplib.SMTPAuthenticationError as error:
        # Its administrator may correct the password; the message waits for that.
        return SendResult(f"the mail server refused the log-in ({error.smtp_code})")
    except smtplib.SMTPResponseException as error:
        return SendResult(_words(error.smtp_code, error.smtp_error), final=error.smtp_code >= _PERMANENT)
    # ValueError: an address that does not fit into a header.
    except (OSError, smtplib.SMTPException, ValueError) as error:
        return SendResult(f"the mail server could not be used: {str(error) or type(error).__name__}"[:300])
    return SendResult("")


def compose(core: Core, message: AttentionMessage, address: str, content: MessageContent) -> EmailMessage:
    """The e-mail. Its id is the message's, so that a mailbox can recognize a repetition."""
    sender = core.settings.mail_from
    email = EmailMessage(policy=SMTP)
    email["Subject"] = content.subject
    email["From"] = sender
    email["To"] = address
    email["Date"] = format_datetime(core.clock.now())
    email["Message-ID"] = f"<{message.id}@{parseaddr(sender)[1].partition('@')[2]}>"
    email["Auto-Submitted"] = "auto-generated"
    email["X-Mailer"] = f"Dronefleet/{version()}"
    email.set_content("\n".join(_text(content)))
    email.add_alternative("\n".join(_html(content)), subtype="html")
    return email


def _connected(server: MailServer) -> smtplib.SMTP:
    """A connection with the required encryption, logged in. A server without STARTTLS is refused, not trusted."""
    context = ssl.create_default_context()
    if server.encryption == "tls":
        connection: smtplib.SMTP = smtplib.SMTP_SSL(server.host, server.port, timeout=SECONDS, context=context)
    else:
        connection = smtplib.SMTP(server.host, server.port, timeout=SECONDS)
    try:
        if server.encryption == "starttls":
            connection.starttls(context=context)
        if server.user:
            connection.login(server.user, server.password)
    except BaseException:
        connection.close()
        raise
    return connection


def _words(code: int, said: bytes | str) -> str:
    text = said.decode("utf-8", "replace") if isinstance(said, bytes) else said
    return f"the mail server answered {code}: {' '.join(text.split())}"[:300]


def _text(content: MessageContent) -> Iterator[str]:
    for each in content.items:
        yield f"{each.asks}: {each.title}"
        yield ""
        yield each.text
        if each.command:
            yield ""
            yield from (f"    {line}" for line in each.command.split("\n"))
        yield from (f"  - {choice}" for choice in each.choices)
        yield ""
        yield from _links(each)
        yield ""
    if content.left_out:
        yield f"… and {content.left_out} more."
    yield f"Inbox: {content.inbox_url}"
    yield f"Change what you receive: {content.settings_url}"


def _links(item: Item) -> Iterator[str]:
    if item.answer_url:
        until = f", until {item.deadline}" if item.deadline else ""
        yield f"Answer without a log-in (works once, within 24 hours{until}; do not forward it):"
        yield item.answer_url
    yield f"Open: {item.url}"


def _html(content: MessageContent) -> Iterator[str]:
    yield "<!doctype html><html><body>"
    for each in content.items:
        yield f"<h3>{escape(each.asks)}: {escape(each.title)}</h3>"
        yield f"<p>{escape(each.text).replace(chr(10), '<br>')}</p>"
        if each.command:
            yield f"<pre>{escape(each.command)}</pre>"
        if each.choices:
            yield f"<ul>{''.join(f'<li>{escape(choice)}</li>' for choice in each.choices)}</ul>"
        if each.answer_url:
            yield f'<p><a href="{escape(each.answer_url)}">Answer without a log-in</a> (works once; do not forward)</p>'
        yield f'<p><a href="{escape(each.url)}">Open</a></p>'
    if content.left_out:
        yield f"<p>… and {content.left_out} more.</p>"
    yield f'<p><a href="{escape(content.inbox_url)}">Inbox</a> · '
    yield f'<a href="{escape(content.settings_url)}">Change what you receive</a></p></body></html>'

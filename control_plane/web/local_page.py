"""Where a form may lead."""

from __future__ import annotations


def local_page(address: str) -> str:
    """`address` if it is a page of ours, else the inbox: a log-in must not lead to another site."""
    harmless = address.startswith("/") and not address.startswith(("//", "/\\")) and address.isprintable()
    return address if harmless else "/"

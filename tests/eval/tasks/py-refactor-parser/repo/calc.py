"""A small calculator: + - * / and parentheses."""

import re


def evaluate(text):
    """Return the value. Raises ValueError for a wrong expression."""
    tokens = re.findall(r"\d+(?:\.\d+)?|\S", text)

    def expression():
        value = term()
        while tokens and tokens[0] in "+-":
            if tokens.pop(0) == "+":
                value += term()
            else:
                value -= term()
        return value

    def term():
        value = factor()
        while tokens and tokens[0] in "*/":
            if tokens.pop(0) == "*":
                value *= factor()
            else:
                value /= factor()
        return value

    def factor():
        token = tokens.pop(0) if tokens else ""
        if token == "(":
            value = expression()
            if not tokens or tokens.pop(0) != ")":
                raise ValueError("missing )")
            return value
        try:
            return float(token)
        except ValueError:
            raise ValueError(f"unexpected {token!r}") from None

    value = expression()
    if tokens:
        raise ValueError(f"unexpected {tokens[0]!r}")
    return value

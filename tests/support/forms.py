"""What a browser sends for a form of a page that nobody touched."""

from __future__ import annotations

from html.parser import HTMLParser

_Attributes = list[tuple[str, str | None]]


class FormValues(HTMLParser):
    """The values of the first form of an operation on a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.values: dict[str, str] = {}
        self._inside = self._over = False
        self._name = ""
        self._text: str | None = None
        self._options: list[tuple[str, bool]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: _Attributes) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "form" and "data-form" in given and not self._over:
            self._inside = True
        if not self._inside:
            return
        name = given.get("name", "")
        if tag == "input" and name and (given.get("type") != "checkbox" or "checked" in given):
            self.values[name] = given.get("value", "")
        elif tag in {"textarea", "select"}:
            self._name, self._text, self._options = name, "" if tag == "textarea" else None, []
        elif tag == "option" and self._name:
            self._options.append((given.get("value", ""), "selected" in given))

    def handle_data(self, data: str) -> None:
        if self._text is not None:
            self._text += data

    def handle_endtag(self, tag: str) -> None:
        if not self._inside:
            return
        if tag == "textarea" and self._text is not None:
            # A browser leaves out the line feed after the tag.
            self.values[self._name] = self._text.removeprefix("\n")
            self._text, self._name = None, ""
        elif tag == "select":
            chosen = [value for value, selected in self._options if selected]
            self.values[self._name] = (chosen or [value for value, _ in self._options])[0]
            self._name = ""
        elif tag == "form":
            self._inside, self._over = False, True

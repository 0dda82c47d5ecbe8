"""Renders the prompt's templates: ours, or the owner's of the same name if they work."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from jinja2 import (
    BaseLoader,
    ChoiceLoader,
    DictLoader,
    Environment,
    PackageLoader,
    PrefixLoader,
    StrictUndefined,
    TemplateNotFound,
)
from jinja2.sandbox import SandboxedEnvironment

from drone.prompting.files import MAX_CHARACTERS, Folder
from drone.prompting.time_limit import within
from shared.redaction import shortened

RENDER_SECONDS = 5.0
_LARGEST = 10 * MAX_CHARACTERS
"""Characters of one rendered section; more means that the template is faulty."""
_OWN_FILES = 100


class Templates:
    """Our templates and the owner's. If one of the owner's fails, this is recorded once, and ours is used instead.

    The owner's may `{% include %}` or extend ours under the name `ours/<name>`.
    """

    def __init__(self, theirs: Mapping[str, str], problems: list[str], *, seconds: float = RENDER_SECONDS) -> None:
        self._theirs = theirs
        self._problems = problems
        self._seconds = seconds

    def render(self, name: str, **values: object) -> str:
        """Return the rendered text, stripped."""
        if name in self._theirs:
            try:
                return within(self._seconds, lambda: self._their_text(name, values))
            except TimeoutError:
                self._note(f"The template {name} took longer than {self._seconds:g} s; the default is used.")
            except Exception as error:  # noqa: BLE001 - foreign code: a template can raise anything
                self._note(f"The template {name} failed; the default is used: {_said(error)}")
        return _environment().get_template(name).render(**values).strip()

    def _their_text(self, name: str, values: Mapping[str, object]) -> str:
        ours = _loader()
        environment = SandboxedEnvironment(
            loader=ChoiceLoader([DictLoader(dict(self._theirs)), ours, PrefixLoader({"ours": ours})]),
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        text = environment.get_template(name).render(**values).strip()
        if len(text) > _LARGEST:
            raise ValueError(f"it renders {len(text):,} characters (maximum {_LARGEST:,})")
        return text

    def _note(self, problem: str) -> None:
        if problem not in self._problems:
            self._problems.append(problem)


def read_templates(home: Folder) -> dict[str, str]:
    """Return the owner's templates by name; unusable ones are added to the folder's problems."""
    directory = home.path / "templates"
    if not directory.is_dir():
        return {}
    found: dict[str, str] = {}
    for path in sorted(directory.glob("*.jinja"))[:_OWN_FILES]:
        name = f"templates/{path.name}"
        if path.name not in names():
            home.problem(name, f"is not a known template: expected one of {', '.join(names())}")
            continue
        text = home.whole(name)
        if text is not None and len(text) > MAX_CHARACTERS:
            home.problem(name, f"is longer than {MAX_CHARACTERS:,} characters; the default is used")
        elif text is not None:
            found[path.name] = text
    return found


@cache
def names() -> tuple[str, ...]:
    """The names of our templates."""
    return tuple(_loader().list_templates())


def _said(error: Exception) -> str:
    line = f", line {number}" if (number := getattr(error, "lineno", None)) else ""
    what = f"{error.name} not found" if isinstance(error, TemplateNotFound) else str(error)
    return f"{type(error).__name__}{line}: {shortened(what, 300)}"


@cache
def _environment() -> Environment:
    # Nothing is escaped: the reader is a model, not a browser. A misspelled name in a template is an error.
    return Environment(
        loader=_loader(),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,  # noqa: S701
    )


@cache
def _loader() -> BaseLoader:
    return PackageLoader("drone.agent")

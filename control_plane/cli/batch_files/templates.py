"""Templates of prompts: Jinja, filled with the fields of a row; an unknown field is an error."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jinja2 import StrictUndefined, Template, TemplateError, UndefinedError
from jinja2.meta import find_undeclared_variables
from jinja2.sandbox import ImmutableSandboxedEnvironment

from shared.errors import Invalid


class UnfilledPrompt(Exception):
    """The template does not fit the row; the text says why."""


class PromptTemplate:
    """One template. Raises Invalid (`E-BATCH-TEMPLATE`) if it is malformed."""

    def __init__(self, text: str, where: str = "the template") -> None:
        # Rows are foreign text; it never becomes part of a template, but its values have methods.
        environment = ImmutableSandboxedEnvironment(undefined=StrictUndefined, cache_size=0)
        try:
            self.fields = find_undeclared_variables(environment.parse(text))
            self._template: Template = environment.from_string(text)
        except (TemplateError, RecursionError) as error:
            raise Invalid(
                f"{where} is not a valid template",
                code="E-BATCH-TEMPLATE",
                why=str(error)[:200],
                next="write fields as {{ name }}; see docs/batches.md",
            ) from None

    def filled(self, fields: Mapping[str, Any]) -> str:
        """The prompt. Raises UnfilledPrompt."""
        try:
            return self._template.render(fields)
        except UndefinedError as error:
            there = ", ".join(sorted(fields))
            raise UnfilledPrompt(f"the template: {error.message} (fields: {there})"[:500]) from error
        except (TemplateError, ArithmeticError, LookupError, RecursionError, TypeError, ValueError) as error:
            raise UnfilledPrompt(f"the template: {error}"[:500]) from error

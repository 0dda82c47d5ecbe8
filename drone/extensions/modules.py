"""Loads the contributions of one file or entry point; modules are private, so that names cannot collide."""

from __future__ import annotations

import sys
from collections.abc import Callable
from itertools import count
from types import ModuleType
from typing import Any

from drone.agent.guardrails.rule_set import FAILED, Rule
from drone.agent.hooks.calling import CallFailed, Calling
from drone.agent.values import Verdict
from drone.extensions.api import Api, Contributions, Origin, rule_of
from drone.extensions.sources import Found, UnreadableSource, content, says_policy, text
from shared.messages import ToolCall

_numbers = count(1)


class LoadFailed(Exception):
    """A file was not loaded at all. If the file declares itself a policy, `stand_in` blocks every call."""

    def __init__(self, what: str, detail: str, stand_in: Rule | None) -> None:
        super().__init__(what)
        self.what = what
        self.detail = detail
        self.stand_in = stand_in


class ModuleLoader:
    """Loads one file; `close` removes it from the process."""

    def __init__(self, found: Found, make_api: Callable[[Origin], Api]) -> None:
        self.found = found
        self._make_api = make_api
        self._api: Api | None = None
        self._module = f"_dronefleet_{found.kind}_{next(_numbers)}_{found.name}"
        self._content = b""
        self._policy = False

    def load(self, calling: Calling) -> Contributions:
        """Return the file's contributions. Raises only LoadFailed, for any failure of the file."""
        try:
            brought = calling(self._loaded)
        except CallFailed as failed:
            self.close()
            why = str(failed.__cause__) if isinstance(failed.__cause__, UnreadableSource) else failed.what
            what = f"{self.found.source[:1].upper()}{self.found.source[1:]} could not be loaded: {why}."
            raise LoadFailed(what, failed.detail, self._stand_in()) from failed
        assert isinstance(brought, Contributions)
        return brought

    def goes_live(self) -> None:
        """Called when the contributions are applied."""
        if self._api:
            self._api.goes_live()

    def close(self) -> None:
        if self._api:
            self._api.close()
        sys.modules.pop(self._module, None)

    def _loaded(self) -> Contributions:
        if self.found.kind == "guardrail":
            return Contributions(rules=self._rules(self._executed()))
        entry = self._extend()
        self._api = self._make_api(Origin(self.found.source, self.found.name, self._policy))
        entry(self._api)
        return self._api.brought

    def _extend(self) -> Callable[[Api], object]:
        point = self.found.entry_point
        found: Any = self._executed() if point is None else point.load()
        module = found if isinstance(found, ModuleType) else sys.modules.get(getattr(found, "__module__", ""))
        self._policy = getattr(module, "policy", False) is True
        extend = getattr(found, "extend", None) if isinstance(found, ModuleType) else found
        if not callable(extend):
            raise TypeError("it has no function extend(api)")
        return extend  # type: ignore[no-any-return]

    def _executed(self) -> ModuleType:
        assert self.found.path is not None
        self._content = content(self.found.path)
        module = ModuleType(self._module)
        module.__file__ = str(self.found.path)
        # stdout is reserved for `drone run --json`.
        module.__dict__["print"] = _print_to_stderr
        # Compiled from the text, not imported, so no bytecode is written. Dataclasses need the entry in sys.modules.
        code = compile(text(self._content), module.__file__, "exec", dont_inherit=True)
        sys.modules[self._module] = module
        exec(code, module.__dict__)  # noqa: S102 - that is what an extension is
        return module

    def _rules(self, module: ModuleType) -> list[Rule]:
        one, many = getattr(module, "guardrail", None), getattr(module, "guardrails", None)
        judges = [*([] if one is None else [one]), *(many or [])]
        if not judges:
            raise TypeError("it exports neither guardrail nor guardrails")
        origin = Origin(self.found.source, self.found.name, getattr(module, "policy", False) is True)
        return [rule_of(judge, origin, number, from_file=True) for number, judge in enumerate(judges, start=1)]

    def _stand_in(self) -> Rule | None:
        if not (self._policy or says_policy(self._content)):
            return None
        shut = _Shut(f"{self.found.source} is a policy and could not be loaded.")
        return Rule(f"{self.found.kind}:{self.found.name}", shut, self.found.source, policy=True, ours=True)


class _Shut:
    """The rule that replaces a missing policy: it blocks every call."""

    def __init__(self, reason: str) -> None:
        self._reason = reason

    def before_call(self, _call: ToolCall) -> Verdict:
        return Verdict("block", self._reason, FAILED)


def _print_to_stderr(*values: object, **options: Any) -> None:
    print(*values, **{"file": sys.stderr, **options})  # noqa: T201 - this is print

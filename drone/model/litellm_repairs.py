"""Repairs of litellm where it has no setting: each has a test in tests/integration/protocols that fails without it."""

from __future__ import annotations

from typing import Any

from drone.model.raw_chunks import reason_of


class _Reasons(dict[str, str]):
    """litellm's table of finish reasons; it passes on words that are not known to be a model's, for `RawChunks`."""

    def get(self, word: Any, _: Any = None) -> Any:
        return reason_of(word or "") or word


def repair() -> None:
    """Apply all of them; litellm must be imported."""
    from litellm.litellm_core_utils import core_helpers
    from litellm.litellm_core_utils.prompt_templates.factory import BedrockConverseMessagesProcessor as Converse
    from litellm.llms.vertex_ai.gemini import transformation as gemini

    # It would take every other word for the regular end of an answer.
    core_helpers._FINISH_REASON_MAP = _Reasons(core_helpers._FINISH_REASON_MAP)
    # It would send two equal calls as one, and Gemini refuses a question with more results than calls.
    gemini.check_if_part_exists_in_parts = lambda *_, **__: False
    convert = Converse.translate_thinking_blocks_to_reasoning_content_blocks

    def with_redacted(thinking_blocks: list[Any]) -> list[Any]:
        # It would send an empty text without a signature in the place of thinking that Bedrock encrypted.
        return [
            {"reasoningContent": {"redactedContent": block["data"]}}
            if block.get("type") == "redacted_thinking"
            else convert([block])[0]
            for block in thinking_blocks
        ]

    Converse.translate_thinking_blocks_to_reasoning_content_blocks = staticmethod(with_redacted)

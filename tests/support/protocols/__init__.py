"""Providers as they speak over HTTP: one module for each protocol, written from its published reference."""

from __future__ import annotations

from tests.support.protocols.anthropic import ANTHROPIC
from tests.support.protocols.bedrock import BEDROCK
from tests.support.protocols.compatible import DEEPSEEK, MISTRAL, VLLM
from tests.support.protocols.gemini import GEMINI
from tests.support.protocols.ollama import OLLAMA
from tests.support.protocols.openai_chat import OPENAI_CHAT
from tests.support.protocols.openai_responses import OPENAI_RESPONSES

PROTOCOLS = (ANTHROPIC, OPENAI_CHAT, OPENAI_RESPONSES, GEMINI, BEDROCK, DEEPSEEK, MISTRAL, OLLAMA, VLLM)

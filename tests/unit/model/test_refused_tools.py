"""Which tools a refusal names, in the words of several providers, and that other refusals name none."""

from __future__ import annotations

from drone.model.errors import ErrorClass, Failure
from drone.model.route import perhaps_refused, refused_tools

OFFERED = ("shell", "file_read", "ask", "mcp__b__good", "mcp__b__bad", "bad")
NAMED = {
    # OpenAI, DeepSeek, Groq, Fireworks, xAI, Vertex AI
    "Invalid schema for function 'mcp__b__bad': array schema missing items": ("mcp__b__bad",),
    "Invalid schema for function 'mcp__b__bad': In context=('properties', 'ask'), 'type' is missing": ("mcp__b__bad",),
    'Invalid schema for function "bad": schema must be a JSON Schema of type: "object"': ("bad",),
    '{"message": "Invalid schema for function \'bad\'", "param": "tools[5].function.parameters"}': ("bad",),
    "invalid JSON schema for tool mcp__b__bad, `tools[4].function.parameters`: /properties/x: bad": ("mcp__b__bad",),
    "Invalid schema for tool `bad`: function 'shell' is fine": ("bad",),
    "Error in tool 'mcp__b__bad': unsupported schema keyword $ref": ("mcp__b__bad",),
    "Unable to submit request because `mcp__b__bad` functionDeclaration `parameters.ask` schema didn't specify the "
    "schema type field.": ("mcp__b__bad",),
    "Unable to submit request because bad function declaration schema specified other fields alongside any_of": (
        "bad",
    ),
    # Anthropic, Bedrock, Gemini, Mistral, pydantic
    "tools.4.custom.input_schema: input_schema does not support oneOf, allOf, anyOf at the top": ("mcp__b__bad",),
    "tools.5.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,64}$'": ("bad",),
    "The value at toolConfig.tools.4.toolSpec.inputSchema.json.type must be one of: object.": ("mcp__b__bad",),
    "* GenerateContentRequest.tools[0].function_declarations[4].parameters.properties[x].items: missing field.": (
        "mcp__b__bad",
    ),
    "Invalid JSON payload received. Unknown name \"$schema\" at 'tools[0].function_declarations[5].parameters': Cannot "
    "find field.\nUnknown name \"$schema\" at 'tools[0].function_declarations[4].parameters'": ("mcp__b__bad", "bad"),
    "[{'type': 'missing', 'loc': ('body', 'tools', 5, 'function', 'parameters'), 'msg': 'Field required'}]": ("bad",),
    '{"detail": [{"loc": ["body", "tools", 4, "function", "parameters"], "msg": "bad"}]}': ("mcp__b__bad",),
    "Invalid 'tools[4].function.name': string too long. Expected a maximum length of 64": ("mcp__b__bad",),
}
OTHERS = [
    "llama2 does not support tools",
    "Invalid 'tools': array too long. Expected an array with maximum length 128, but got an array with length 140",
    "tools.9.custom.input_schema: JSON schema is invalid",  # a place that the request does not have
    "tools.4.custom.cache_control: at most four blocks",
    "Invalid schema for function 'unknown': array schema missing items",
    "Invalid schema for response_format 'answer': 'shell' is not permitted",
    "Invalid 'messages[3].tool_calls[0].function.name': string does not match pattern",
    "messages.3.content.1: tool_use ids were found without tool_result blocks: shell",
    "Function call `default_api:shell` in the 2. content block is missing a `thought_signature`",
    "An assistant message with 'tool_calls' must be followed by messages to each of them: shell, ask",
    "temperature is not supported",
    "the model shell does not exist",
    "",
]

UNNAMED = [
    'JSON schema conversion failed:\nUnrecognized schema: {"type": "any"}',
    "failed to parse grammar",
    "Failed to initialize samplers: failed to parse grammar",
    "Grammar error: The provided JSON schema contains features not supported by xgrammar.",
    "invalid tool schema: unknown type",
]


def test_a_refused_tool_is_found_by_its_name_or_its_place_and_no_other_refusal_names_one() -> None:
    expected = NAMED | dict.fromkeys(OTHERS, ())
    found = {said: refused_tools(Failure(ErrorClass.FORMAT, said), OFFERED) for said in expected}
    assert found == expected


def test_only_a_refused_request_is_changed() -> None:
    said = next(iter(NAMED))
    classes = [each for each in ErrorClass if refused_tools(Failure(each, said), OFFERED)]
    assert classes == [ErrorClass.SERVER, ErrorClass.UNKNOWN, ErrorClass.MODEL_NOT_FOUND, ErrorClass.FORMAT]


def test_a_schema_that_is_refused_without_a_name_is_one_of_an_mcp_server() -> None:
    of_servers = ("mcp__b__good", "mcp__b__bad")
    found = {said: perhaps_refused(Failure(ErrorClass.SERVER, said), OFFERED) for said in UNNAMED}
    assert found == dict.fromkeys(UNNAMED, of_servers)
    for error_class, said in ((ErrorClass.RATE_LIMIT, UNNAMED[0]), (ErrorClass.FORMAT, "temperature is not supported")):
        assert perhaps_refused(Failure(error_class, said), OFFERED) == ()

"""The tools that the conformance suite asks for, on the console's own MCP view and with its own check of tokens.

Only tests serve this; nothing of the product knows of it.
"""

from typing import Any

from django.http import HttpRequest
from django.urls import path
from django_mcpz.server import Audio, EmbeddedResource, Image, Text, ToolError, elicit
from msgspec import Struct

from console.mcp import Server, authenticate

PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de"
    "0000000c49444154789c63606060000000040001f61738550000000049454e44ae426082"
)
WAV = b"RIFF\x24\0\0\0WAVEfmt \x10\0\0\0\1\0\1\0\x40\x1f\0\0\x80\x3e\0\0\2\0\x10\0data\0\0\0\0"

SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}

server = Server(name="conformance", version="1", auth=authenticate)
urlpatterns = [path("mcp", server, name="mcp")]


class Name(Struct):
    name: str


class Color(Struct):
    color: str


class Confirmed(Struct):
    ok: bool


@server.tool(description="A text.")
def test_simple_text(request: HttpRequest) -> str:
    return "This is a simple text response for testing."


@server.tool(description="A picture.")
def test_image_content(request: HttpRequest) -> Image:
    return Image(PNG, "image/png")


@server.tool(description="A sound.")
def test_audio_content(request: HttpRequest) -> Audio:
    return Audio(WAV, "audio/wav")


@server.tool(description="A resource inside the answer.")
def test_embedded_resource(request: HttpRequest) -> EmbeddedResource:
    text = "This is an embedded resource content."
    return EmbeddedResource("test://embedded-resource", text=text, mime_type="text/plain")


@server.tool(description="A text, a picture and a resource.")
def test_multiple_content_types(request: HttpRequest) -> list[Any]:
    resource = EmbeddedResource(
        "test://mixed-content-resource", text='{"test":"data","value":123}', mime_type="application/json"
    )
    return [Text("Multiple content types test:"), Image(PNG, "image/png"), resource]


@server.tool(description="A refusal.")
def test_error_handling(request: HttpRequest) -> str:
    raise ToolError("This tool intentionally returns an error for testing")


@server.tool(description="Asks for a name.")
def test_input_required_result_elicitation(request: HttpRequest) -> str:
    return f"Hello, {elicit(request, 'What is your name?', Name, key='user_name').name}!"


@server.tool(description="Asks twice.")
def test_input_required_result_multi_round(request: HttpRequest) -> str:
    name = elicit(request, "Step 1: What is your name?", Name, key="step1").name
    color = elicit(request, "Step 2: What is your favorite color?", Color, key="step2").color
    return f"{name} likes {color}."


@server.tool(description="Asks, and carries its state along.")
def test_input_required_result_request_state(request: HttpRequest) -> str:
    return f"state-ok: {elicit(request, 'Please confirm', Confirmed, key='confirm').ok}"


@server.tool(description="Asks, and refuses a state that is not its own.")
def test_input_required_result_tampered_state(request: HttpRequest) -> str:
    return f"state-ok: {elicit(request, 'Please confirm', Confirmed, key='confirm').ok}"


@server.tool(description="Asks while its answer is awaited.")
def test_streaming_elicitation(request: HttpRequest) -> str:
    return f"Hello, {elicit(request, 'What is your name?', Name, key='user_name').name}!"


@server.tool(description="Could log; the console logs nothing to clients.")
def test_logging_tool(request: HttpRequest) -> str:
    return "Nothing was logged."


@server.tool(name="json_schema_2020_12_tool", description="Arguments that use all of JSON Schema.", input_schema=SCHEMA)
def json_schema_2020_12_tool(request: HttpRequest, given: dict[str, Any]) -> str:
    return "Fine."

"""The API's description as a page without scripts.

FastAPI's own page fetches its scripts from elsewhere; the pages of this server never do.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

STYLE = """body { font: 16px/1.5 sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; margin: .5rem 0 1rem; }
th, td { border: 1px solid #ccc; padding: .25rem .5rem; text-align: left; vertical-align: top; }
code { font-family: monospace; } h2 { margin-top: 2.5rem; border-bottom: 1px solid #ccc; }
"""
_BOUNDS = {
    "minimum": "at least",
    "exclusiveMinimum": "above",
    "maximum": "at most",
    "minLength": "characters at least",
    "maxLength": "characters at most",
    "minItems": "items at least",
    "maxItems": "items at most",
}
Schema = Mapping[str, Any]


def docs_page(api: Schema) -> str:
    """Return an OpenAPI description as HTML.

    Args:
        api: the description, with its models under `components.schemas`.
    """
    models = api.get("components", {}).get("schemas", {})
    sections = [
        _operation(path, method, operation)
        for path, methods in api["paths"].items()
        for method, operation in methods.items()
    ]
    tables = [_model(name, schema) for name, schema in sorted(models.items())]
    title = escape(api["info"]["title"])
    return (
        f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>{title}: API</title>'
        '<meta name="viewport" content="width=device-width"><link rel="stylesheet" href="/docs.css"></head>'
        f"<body><h1>{title}: API</h1><p>{escape(api['info'].get('description', ''))}</p>"
        '<p>For programs: <a href="/openapi.json">openapi.json</a>. The page for people: <a href="/">/</a>.</p>'
        f"{''.join(sections)}<h2>Models</h2>{''.join(tables)}</body></html>"
    )


def _operation(path: str, method: str, operation: Schema) -> str:
    rows = [("request", _content(operation["requestBody"]), "")] if "requestBody" in operation else []
    rows += [
        (status, _content(response), escape(response.get("description", "")))
        for status, response in operation["responses"].items()
    ]
    about = operation.get("description", "")
    return (
        f"<h2><code>{escape(method.upper())} {escape(path)}</code></h2><p>{escape(operation.get('summary', ''))}.</p>"
        + (f"<p>{escape(about)}</p>" if about else "")
        + _table(("", "JSON", "when"), rows)
    )


def _content(part: Schema) -> str:
    return ", ".join(
        _type(kind.get("schema", {})) or escape(name) for name, kind in part.get("content", {}).items()
    )


def _model(name: str, schema: Schema) -> str:
    required = schema.get("required", [])
    rows = [
        (
            f"<code>{escape(key)}</code>",
            ", ".join([_type(field), *_bounds(field)]),
            "needed" if key in required else escape(repr(field.get("default", ""))),
            escape(field.get("description", "")),
        )
        for key, field in schema.get("properties", {}).items()
    ]
    head = f'<h3 id="{escape(name)}">{escape(name)}</h3><p>{escape(schema.get("description", ""))}</p>'
    return head + _table(("field", "type", "default", ""), rows)


def _type(schema: Schema) -> str:
    """Return a schema's type in words."""
    if "$ref" in schema:
        name = escape(schema["$ref"].rpartition("/")[2])
        return f'<a href="#{name}">{name}</a>'
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(_type(choice) for choice in schema["anyOf"]))
    if "enum" in schema:
        return "one of " + ", ".join(escape(str(value)) for value in schema["enum"])
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items', {}))}"
    if schema.get("type") == "object" and isinstance(schema.get("additionalProperties"), Mapping):
        return f"object of {_type(schema['additionalProperties'])}"
    return escape(str(schema.get("type", "")))


def _bounds(schema: Schema) -> Iterator[str]:
    for part in (schema, *schema.get("anyOf", ())):
        yield from (f"{words} {part[key]}" for key, words in _BOUNDS.items() if key in part)


def _table(heads: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in heads)
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><tr>{head}</tr>{body}</table>"

"""The description as a page for people: nothing in it comes from elsewhere."""

from base64 import b64encode
from hashlib import sha256
from html import escape
from typing import Any

STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 60rem; padding: 0 1rem; color: #222; }
h1, h2 { line-height: 1.2; } h2 { margin-top: 2.5rem; text-transform: capitalize; }
details { border: 1px solid #ddd; border-radius: 6px; margin: .5rem 0; padding: .5rem .8rem; }
summary { cursor: pointer; } code { font: 14px/1.4 ui-monospace, monospace; } .method { font-weight: bold; }
.scope { float: right; color: #666; font-size: 14px; } table { border-collapse: collapse; margin: .5rem 0; }
td, th { border-top: 1px solid #eee; padding: .2rem .8rem .2rem 0; text-align: left; vertical-align: top; }
@media (prefers-color-scheme: dark) { body { background: #181818; color: #ddd; } details { border-color: #444; } }
"""
POLICY = f"default-src 'none'; style-src 'sha256-{b64encode(sha256(STYLE.encode()).digest()).decode()}'"


def page_of(document: dict[str, Any]) -> str:
    """Returns a page about every route and every record of a description."""
    info = document["info"]
    tags: dict[str, list[str]] = {}
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            tags.setdefault(operation["tags"][0], []).append(_route(path, method, operation))
    parts = [f"<h2>{escape(tag)}</h2>{''.join(routes)}" for tag, routes in tags.items()]
    records = [_record(name, schema) for name, schema in document["components"]["schemas"].items()]
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(info["title"])}</title>'
        f'<meta name="viewport" content="width=device-width"><style>{STYLE}</style></head><body>'
        f"<h1>{escape(info['title'])} {escape(info['version'])}</h1><p>{escape(info['description'])} Send a key as "
        f"<code>Authorization: Bearer KEY</code>; bodies are JSON. For programs: "
        f'<a href="/openapi.json">openapi.json</a>.</p>{"".join(parts)}<h2>records</h2>{"".join(records)}</body></html>'
    )


def _route(path: str, method: str, operation: dict[str, Any]) -> str:
    told = [f"<p>{escape(operation['summary'])}.</p>"]
    rows = [(each["name"], each["in"], _kind(each["schema"])) for each in operation["parameters"]]
    for media, content in operation.get("requestBody", {}).get("content", {}).items():
        rows.append(("body", media, _kind(content["schema"])))
    told.append(_table(rows))
    answers = []
    for status, answer in operation["responses"].items():
        schemas = [_kind(content["schema"]) for content in answer.get("content", {}).values()]
        answers.append((status, answer["description"], *schemas))
    told.append(_table(answers))
    scope = f'<span class="scope">{escape(operation.get("x-scope", "no key"))}</span>'
    head = f'{scope}<code><span class="method">{method.upper()}</span> {escape(path)}</code>'
    return f"<details><summary>{head}</summary>{''.join(told)}</details>"


def _record(name: str, schema: dict[str, Any]) -> str:
    rows = [
        (
            field,
            _kind(each),
            each.get("description", "") + ("" if field not in schema.get("required", ()) else " (needed)"),
        )
        for field, each in schema.get("properties", {}).items()
    ]
    text = f"<p>{escape(schema.get('description', ''))}</p>{_table(rows)}"
    return f'<details id="{escape(name)}"><summary><code>{escape(name)}</code></summary>{text}</details>'


def _table(rows: list[Any]) -> str:
    cells = ("".join(f"<td>{escape(str(cell))}</td>" for cell in row) for row in rows)
    return f"<table>{''.join(f'<tr>{each}</tr>' for each in cells)}</table>" if rows else ""


def _kind(schema: dict[str, Any]) -> str:
    """Returns the type of a schema in a few words."""
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "anyOf" in schema:
        return " or ".join(_kind(each) for each in schema["anyOf"])
    if "enum" in schema:
        return " or ".join(str(each) for each in schema["enum"])
    if schema.get("type") == "array":
        return f"list of {_kind(schema['items'])}" if isinstance(schema.get("items"), dict) else "list"
    limits = [f"{sign} {schema[name]}" for name, sign in SIGNS.items() if name in schema]
    return " ".join([str(schema.get("type", "any")), *limits])


SIGNS = {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤", "exclusiveMaximum": "<"}

"""An OpenAI-compatible server that misbehaves on demand: a process of its own on loopback, for tests and benchmarks.

What a call meets is written in its text: `faults=429,reset,500 id=7` meets one fault after the other at its first
attempts and is then answered with `echo 7`. Settings of the whole server are arguments; `GET /stats` counts.
With `--replies FILE` it plays a model: JSON lines `{"contains": TEXT or list, "reply": TEXT or list}`, of which
the first that fits answers; of a list of replies the n-th call of the same prompt gets the n-th, and so on in turn.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

REASONS = {200: "OK", 400: "Bad Request", 401: "Unauthorized", 404: "Not Found", 429: "Too Many Requests"}
MODELS = ("m", "plain", "obedient", "warm", "o3-mini", "small", "large")


class FaultServer:
    """The state of the server: settings and counts."""

    def __init__(self, settings: argparse.Namespace) -> None:
        self.settings = settings
        self.random = random.Random(7)
        self.attempts: Counter[str] = Counter()
        self.models: Counter[str] = Counter()
        self.answers: Counter[str] = Counter()
        self.rejected = 0
        self.in_flight = self.most_in_flight = self.calls = 0
        self.order: list[str] = []
        self.shown: list[object] = []
        self.fields: list[dict[str, object]] = []
        self.times: list[float] = []
        self.tokens, self.refilled = float(settings.burst), time.monotonic()
        self.down = False
        self.rules: list[dict[str, Any]] = []
        self.prefixes: set[int] = set()
        if settings.replies:
            self.rules = [json.loads(line) for line in Path(settings.replies).read_text(encoding="utf-8").splitlines()]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            while await self.one(reader, writer):
                pass
        with contextlib.suppress(ConnectionError):
            writer.close()

    async def one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        _, path, _ = head.split(" ", 2)
        headers = {
            name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head.split("\r\n")[1:])
        }
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        if path == "/v1/chat/completions":
            return await self.completion(headers, json.loads(body), writer)
        status, content = self.other(path)
        self.send(writer, status, content)
        return True

    def send(self, writer: asyncio.StreamWriter, status: int, body: object, extra: str = "", cut: int = 0) -> None:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        head = (
            f"HTTP/1.1 {status} {REASONS.get(status, 'Status')}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(data)}\r\n{extra}\r\n"
        )
        writer.write(head.encode() + (data[:cut] if cut else data))

    async def completion(self, headers: dict[str, str], body: dict[str, Any], writer: asyncio.StreamWriter) -> bool:
        self.calls += 1
        self.models[body["model"]] += 1
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            return await self.answer(headers, body, writer)
        finally:
            self.in_flight -= 1

    async def answer(self, headers: dict[str, str], body: dict[str, Any], writer: asyncio.StreamWriter) -> bool:
        settings = self.settings
        text = body["messages"][-1]["content"]
        if settings.remember:
            self.order.append(text)
            self.shown.append(body["messages"])
            fields = {name: value for name, value in body.items() if name != "messages"}
            self.fields.append({**fields, "authorization": headers.get("authorization", "")})
            self.times.append(time.time())
        self.attempts[text] += 1 if settings.remember else 0
        if self.down:
            writer.transport.abort()
            return False
        if refused := self.refused(body, headers.get("authorization", "")):
            self.send(writer, *refused)
            return True
        if self.turned_away():
            self.rejected += 1
            wait = f"Retry-After: {settings.retry_after}\r\n" if settings.retry_after else ""
            self.send(writer, 429, error_body("slow down", "rate_limit_exceeded"), wait)
            return True
        found = re.search(r"faults=([\w.:,\-]+)", text)
        faults = found.group(1).split(",") if found else []
        turn = self.attempts[text] - 1
        if faults and (faults[-1] == "always" or turn < len(faults)):
            return await self.fault(faults[0] if faults[-1] == "always" else faults[turn], body, writer)
        if settings.delay:
            await asyncio.sleep(settings.delay)
        if settings.remember:
            self.answers[text] += 1
        reply = reply_body(body, text, self.said(text, self.attempts[text]))
        if settings.counts_tokens:
            self.count(text, reply)
        if settings.thoughts:
            self.think(body, reply)
        self.send(writer, 200, reply)
        return True

    def refused(self, body: dict[str, Any], key: str = "") -> tuple[int, dict[str, Any]] | None:
        """The status and the body of a call that is turned away: who asks, for what, and which field is not taken."""
        of = self.settings
        longest, unknown = body.get("max_tokens", 0), "is not supported with this model."
        rules = (
            (key == "Bearer wrong-key", 401, f"Incorrect API key provided: wrong-key ({key}).", "invalid_api_key"),
            (body["model"] not in MODELS, 404, f"The model {body['model']!r} does not exist", "model_not_found"),
            (0 <= of.accepts_for < self.calls, 403, "Forbidden", "forbidden"),
            (0 < of.most_tokens < longest, 400, f"max_tokens is too large: {longest}. At most {of.most_tokens} are "
             "supported.", "invalid_value"),
            (body["model"] == "warm" and body.get("temperature") == 0, 400, "Unsupported value: 'temperature' does not "
             "support 0 with this model. Only the default (1) value is.", "unsupported_value"),
            (of.no_schema and "response_format" in body, of.no_schema, "something broke", "server_error"),
            (of.no_logprobs and "logprobs" in body, 400, f"logprobs {unknown}", "unsupported_value"),
            (of.renamed and "max_tokens" in body, 400, f"Unsupported parameter: 'max_tokens' {unknown} Use "
             "'max_completion_tokens' instead.", "unsupported_parameter"),
        )  # fmt: skip
        return next(((status, error_body(text, code)) for holds, status, text, code in rules if holds), None)

    def count(self, text: str, reply: dict[str, Any]) -> None:
        """Counts words and marks as tokens, and those at the beginning that were shown before, by whole blocks."""
        said = reply["choices"][0]
        words = re.findall(r"\w+|[^\w\s]", text)
        usage = {
            "prompt_tokens": len(words),
            "completion_tokens": len(re.findall(r"\w+|[^\w\s]", said["message"]["content"])),
        }
        if size := self.settings.prefix_block:
            ends = range(size, len(words) + 1, size)
            known = [end for end in ends if hash(tuple(words[:end])) in self.prefixes]
            self.prefixes |= {hash(tuple(words[:end])) for end in ends}
            usage["prompt_tokens_details"] = {"cached_tokens": max(known, default=0)}  # type: ignore[assignment]
        reply["usage"] = usage

    def think(self, body: dict[str, Any], reply: dict[str, Any]) -> None:
        """Makes of a reply that of a model which thinks first, as far as the longest reply allows."""
        choice, usage = reply["choices"][0], reply["usage"]
        longest = body.get("max_completion_tokens") or body.get("max_tokens") or 10**6
        thought = min(self.settings.thoughts, longest)
        thoughts = f"Maybe 2. {'Hm. ' * thought}"
        fits = longest >= self.settings.thoughts + usage["completion_tokens"]
        content = choice["message"]["content"] if fits else ""
        if self.settings.shows_thoughts == "think":
            content = f"<think>{thoughts}</think>\n\n{content}" if fits else f"<think>{thoughts}"
        elif self.settings.shows_thoughts:
            choice["message"][self.settings.shows_thoughts] = thoughts
        choice["message"]["content"] = content
        choice["finish_reason"] = "stop" if fits else "length"
        usage["completion_tokens"] = thought + usage["completion_tokens"] if fits else longest
        usage["total_tokens"] = usage["prompt_tokens"] + usage["completion_tokens"]
        usage["completion_tokens_details"] = {"reasoning_tokens": thought}
        usage["prompt_tokens_details"] = {"cached_tokens": 8}

    def said(self, text: str, call: int) -> str | None:
        """What the rules reply to a prompt at its n-th call; None without rules."""
        for rule in self.rules:
            parts = [rule["contains"]] if isinstance(rule.get("contains"), str) else rule.get("contains", [])
            if all(part in text for part in parts):
                replies = rule["reply"] if isinstance(rule["reply"], list) else [rule["reply"]]
                return str(replies[(max(call, 1) - 1) % len(replies)])
        return None

    def turned_away(self) -> bool:
        settings = self.settings
        if settings.random_429 and self.random.random() < settings.random_429:
            return True
        if not settings.rate:
            return False
        now = time.monotonic()
        self.tokens = min(settings.burst, self.tokens + (now - self.refilled) * settings.rate)
        self.refilled = now
        if self.tokens < 1:
            return True
        self.tokens -= 1
        return False

    async def fault(self, kind: str, body: dict[str, Any], writer: asyncio.StreamWriter) -> bool:
        kind, _, value = kind.partition(":")
        good = reply_body(body, "x")
        if kind == "429":
            wait = f"Retry-After: {value}\r\n" if value else ""
            self.send(writer, 429, error_body("slow down", "rate_limit_exceeded"), wait)
        elif kind.isdigit():
            texts = {
                "context": ("This model's maximum context length is 10 tokens.", "context_length_exceeded"),
                "room": (
                    "'max_tokens' or 'max_completion_tokens' is too large: 64. This model's maximum context length is "
                    "4096 tokens and your request has 4050 input tokens (64 > 4096 - 4050).",
                    "BadRequestError",
                ),
                "filter": ("The prompt triggered the content filter.", "content_filter"),
                "tokens": ("Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.", "unsupported"),
            }
            if value == "tokens" and "max_completion_tokens" in body:
                self.send(writer, 200, reply_body(body, "id=renamed"))
                return True
            self.send(writer, int(kind), error_body(*texts.get(value, ("something broke", "server_error"))))
        elif kind == "reset":
            writer.transport.abort()
            return False
        elif kind == "hang":
            await asyncio.sleep(float(value))
            return False
        elif kind == "cut":
            self.send(writer, 200, good, cut=30)
            await writer.drain()
            writer.transport.close()
            return False
        elif kind in ("garbage", "list", "inner", "empty"):
            inner = {"error": {"message": "upstream failed", "code": int(value or 0)}}
            bodies = {"garbage": b"<html>no JSON \xff</html>", "list": b"[1, 2]", "inner": inner}
            self.send(writer, 200, bodies.get(kind, {**good, "choices": []}))
        else:
            parts = [{"type": "text", "text": "in "}, {"type": "text", "text": "parts"}]
            content = {"length": "4 because of", "parts": parts}.get(kind)
            message = {"role": "assistant", "content": content}
            message |= {"refusal": "I cannot help with that."} if kind == "refusal" else {}
            finish = {"filtered": "content_filter", "length": "length"}.get(kind, "stop")
            self.send(writer, 200, {**good, "choices": [{"index": 0, "message": message, "finish_reason": finish}]})
        return True

    def other(self, path: str) -> tuple[int, object]:
        """Everything besides completions: counts and switches."""
        if path == "/stats":
            names = (
                "attempts", "answers", "rejected", "order", "times", "most_in_flight", "calls", "models",
            )  # fmt: skip
            return 200, {name: getattr(self, name) for name in names}
        if path in ("/shown", "/fields"):
            return 200, self.shown if path == "/shown" else self.fields
        if path.startswith("/down/"):
            self.down = path.endswith("1")
            return 200, {}
        return 404, error_body("not found", "not_found")


def error_body(message: str, code: str) -> dict[str, Any]:
    return {"error": {"message": message, "type": "error", "code": code, "param": None}}


def schema_reply(schema: dict[str, Any]) -> str:
    """The first object that a schema allows: its fields in their order, the first label of each closed list."""
    return json.dumps({name: one.get("enum", ["It says so."])[0] for name, one in schema["properties"].items()})


def reply_body(body: dict[str, Any], text: str, said: str | None = None) -> dict[str, Any]:
    """A good reply: as a rule says, else `echo ID`; `obedient` obeys constraints, others ignore them in silence."""
    found = re.search(r"id=(\S+)", text)
    content = said if said is not None else f"echo {found.group(1) if found else text[:40]}"
    choice: dict[str, Any] = {"index": 0, "finish_reason": "stop"}
    if body["model"] == "obedient":
        if "structured_outputs" in body:
            held = body["structured_outputs"]
            allowed = held.get("choice") or [schema_reply(held["json"])]
            content = said if said in allowed else allowed[0]
        if body.get("logprobs"):
            top = [{"token": "4", "logprob": -0.1}, {"token": "5", "logprob": -2.5}]
            choice["logprobs"] = {"content": [{"token": "4", "logprob": -0.1, "top_logprobs": top}]}
    elif body["model"] == "plain" and "response_format" in body:
        content = schema_reply(body["response_format"]["json_schema"]["schema"])
    choice["message"] = {"role": "assistant", "content": content}
    return {
        "id": "c",
        "object": "chat.completion",
        "created": 0,
        "model": f"{body['model']}-2026",
        "system_fingerprint": "fp_1",
        "choices": [choice],
        "usage": {"prompt_tokens": 11, "completion_tokens": 3, "total_tokens": 14},
    }


class Running:
    """A server under way, as its starter sees it."""

    def __init__(self, port: int) -> None:
        self.root = f"http://127.0.0.1:{port}"
        self.url = f"{self.root}/v1"

    def get(self, path: str) -> Any:
        with urlopen(Request(f"{self.root}{path}"), timeout=120) as answer:
            return json.load(answer)

    def stats(self) -> Any:
        return self.get("/stats")


@contextlib.contextmanager
def running(**settings: object) -> Iterator[Running]:
    """Starts the server as a process; settings are its arguments (`random_429=0.2`)."""
    import subprocess

    arguments = [f"--{name.replace('_', '-')}={value}" for name, value in settings.items()]
    command = [sys.executable, str(Path(__file__).resolve()), *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield Running(int(process.stdout.readline()))
        finally:
            process.kill()


async def main(settings: argparse.Namespace) -> None:
    server = FaultServer(settings)
    listening = await asyncio.start_server(server.serve, "127.0.0.1", settings.port, backlog=4096)
    print(listening.sockets[0].getsockname()[1], flush=True)
    async with listening:
        await listening.serve_forever()


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--delay", type=float, default=0.0, help="seconds before a reply")
    parser.add_argument("--rate", type=float, default=0.0, help="calls a second; the others get 429")
    parser.add_argument("--burst", type=float, default=5.0, help="calls that may come at once above the rate")
    parser.add_argument("--random-429", type=float, default=0.0, help="share of calls that get 429")
    parser.add_argument("--retry-after", default="", help="the header of those 429")
    parser.add_argument("--replies", default="", help="a file of rules: what the model says")
    parser.add_argument("--accepts-for", type=int, default=-1, help="calls before every further one gets 403")
    parser.add_argument("--most-tokens", type=int, default=0, help="the longest reply that may be asked for")
    parser.add_argument("--renamed", type=int, default=0, help="1: max_tokens is refused for its newer name")
    parser.add_argument("--no-logprobs", type=int, default=0, help="1: calls with logprobs are refused")
    parser.add_argument("--no-schema", type=int, default=0, help="the status of calls with a schema, without a reason")
    parser.add_argument("--thoughts", type=int, default=0, help="tokens that the model thinks before it replies")
    parser.add_argument("--shows-thoughts", default="", help="where: reasoning_content, reasoning, or think (tags)")
    parser.add_argument("--counts-tokens", type=int, default=0, help="1: the usage is counted")
    parser.add_argument("--prefix-block", type=int, default=0, help="tokens of a block in the server's prefix cache")
    parser.add_argument("--remember", type=int, default=1, help="0: keep no texts (for long runs)")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(main(parse(sys.argv[1:])))

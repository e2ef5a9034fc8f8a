"""The Batch API: requests as a file, replies within a day at half the price; a killed run finds its batches again."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import logging
import os
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from rubric_measures.base.errors import BackendError, FormatError
from rubric_measures.base.files import atomic_writer, path_name, read_text
from rubric_measures.base.json_text import parse_json
from rubric_measures.models.base import Reply, Request
from rubric_measures.models.wire import Known, reply_of, request_body, trouble_of_status, without_key

_LOG = logging.getLogger("rubric_measures")

# Of one file, by the endpoint's rules (200 MB, of which the last line may take some).
MOST_REQUESTS = 50_000
_MOST_BYTES = 190_000_000
_LONGEST_POLL = 60.0
_ENDED = ("completed", "failed", "expired", "cancelled")
_AGAIN = "run the same command again to continue"


class BatchRun:
    """One run over the Batch API; holds no request.

    Requests that are refused for a field that the model does not take, or takes by another name, are sent once more.

    The state file lists the batches whose replies were not all taken. An entry is written before its batch is made and
    removed when the caller has taken all of its replies (and so has them in the cache): a run killed at any moment
    pays for no batch twice.
    """

    def __init__(
        self,
        name: str,
        client: Any,
        url: str,
        state: str | os.PathLike[str],
        *,
        poll: float = 5.0,
        most_requests: int = MOST_REQUESTS,
        secrets: tuple[str, ...] = (),
        on_wire: Callable[[Request], Request] = lambda request: request,
        known: Known | None = None,
    ) -> None:
        self._name = name
        self._client = client
        self._url = url
        self._state = path_name(state)
        self._poll = poll
        self._most_requests = most_requests
        self._secrets = secrets
        self._on_wire = on_wire
        self._known = known or Known()

    def complete(self, requests: Iterable[Request]) -> Iterator[tuple[Request, Reply]]:
        """Answers from the batches of a killed run, then sends what is left in batches and waits for them.

        Raises:
            BackendError: the endpoint cannot be used, or refuses a batch.
            FormatError: the state file is damaged.
        """
        with self._explained():
            earlier = {batch: self._results(batch) for batch in self._known_batches()}
            chunk: dict[str, list[Request]] = {}
            taken: set[str] = set()
            size = 0
            for request in requests:
                key = request.key
                found = next((results for results in earlier.values() if key in results), None)
                if found is not None:
                    taken.add(key)
                    if not self._teaches(found[key], request, Known()):
                        yield request, self._reply(found[key], request)
                        continue
                chunk.setdefault(key, []).append(request)
                size += len(self._line(request))
                if len(chunk) >= self._most_requests or size >= _MOST_BYTES:
                    yield from self._send(chunk)
                    chunk, size = {}, 0
            if chunk:
                yield from self._send(chunk)
            # Replies that this run did not ask for stay with the endpoint until a run does.
            self._forget(batch for batch, results in earlier.items() if results.keys() <= taken)

    def _send(self, chunk: Mapping[str, list[Request]]) -> Iterator[tuple[Request, Reply]]:
        """Makes a batch of requests and waits for it."""
        before = dataclasses.replace(self._known, left_out=set(self._known.left_out))
        with tempfile.TemporaryFile() as file:
            file.writelines(self._line(requests[0]) for requests in chunk.values())
            file.seek(0)
            uploaded = self._client.files.create(file=("requests.jsonl", file), purpose="batch").id
        self._note(uploaded, None)
        batch = self._client.batches.create(
            input_file_id=uploaded, endpoint=_path(next(iter(chunk.values()))[0]), completion_window="24h"
        ).id
        self._note(uploaded, batch)
        results = self._results(batch)
        again: dict[str, list[Request]] = {}
        for key, requests in chunk.items():
            line = results.get(key)
            if self._teaches(line, requests[0], before):
                again[key] = requests
                continue
            left_out = sorted(before.left_out_of(self._on_wire(requests[0])))
            for request in requests:
                reply = self._reply(line, request)
                yield (
                    request,
                    dataclasses.replace(reply, raw={**reply.raw, "left_out": left_out}) if left_out else reply,
                )
        self._forget([batch])
        if again:
            # Each field is learned once, so this ends.
            yield from self._send(again)

    def _teaches(self, line: Mapping[str, Any] | None, request: Request, before: Known) -> bool:
        """Whether a refusal says how the request can be sent; `before` is what was known when it was."""
        answer = (line or {}).get("response") or {}
        if answer.get("status_code") in (None, 200):
            return False
        said = trouble_of_status(answer["status_code"], answer.get("body"), None, self._secrets).error
        lacking = set(self._known.left_out)
        learned = self._known.learn(
            answer["status_code"], said, request_body(self._on_wire(request), self._name, before)
        )
        self._known.say_new(lacking, self._name, self._url, said)
        return learned

    def _line(self, request: Request) -> bytes:
        body = request_body(self._on_wire(request), self._name, self._known)
        call = {"custom_id": request.key, "method": "POST", "url": _path(request), "body": body}
        return json.dumps(call, ensure_ascii=False).encode("utf-8") + b"\n"

    def _results(self, batch: str) -> dict[str, Mapping[str, Any]]:
        """Waits for a batch; key -> line of its results."""
        pause = self._poll
        while (state := self._client.batches.retrieve(batch)).status not in _ENDED:
            time.sleep(pause)
            pause = min(_LONGEST_POLL, 1.5 * pause)
        if state.status == "failed":
            self._forget([batch])
            errors = getattr(state.errors, "data", None) or []
            reason = "; ".join(str(error.message) for error in errors[:3]) or "no reason given"
            raise BackendError(without_key(f"{self._url}: batch {batch} failed: {reason}", self._secrets))
        found: dict[str, Mapping[str, Any]] = {}
        for file in (state.output_file_id, state.error_file_id):
            content = self._client.files.content(file).read() if file else b""
            for line in content.splitlines():
                with contextlib.suppress(ValueError):  # a line that is no JSON is a reply that never came
                    result = parse_json(line, lenient=True)
                    found[str(result.get("custom_id"))] = result
        return found

    def _reply(self, line: Mapping[str, Any] | None, request: Request) -> Reply:
        if line is None:
            return Reply(None, "failed", f"the batch ended without this reply; {_AGAIN}")
        answer = line.get("response") or {}
        status, body = answer.get("status_code"), answer.get("body")
        if status == 200:
            found = reply_of(json.dumps(body), self._on_wire(request), self._secrets)
        else:
            found = trouble_of_status(status or 500, body or {"error": line.get("error")}, None, self._secrets)
        return found if isinstance(found, Reply) else Reply(None, found.status, found.error)

    def _known_batches(self) -> list[str]:
        """The batches of earlier runs; one whose id was not noted any more is found by its file."""
        ours = self._ours()
        if None in ours.values():
            ours |= {
                one.input_file_id: one.id for one in self._client.batches.list(limit=100) if one.input_file_id in ours
            }
        # A file without a batch was never sent.
        found = {file: batch for file, batch in ours.items() if batch}
        self._write(found)
        return list(found.values())

    def _note(self, file: str, batch: str | None) -> None:
        self._write({**self._ours(), file: batch})

    def _forget(self, batches: Iterable[str]) -> None:
        if gone := set(batches):
            self._write({file: batch for file, batch in self._ours().items() if batch not in gone})

    def _ours(self) -> dict[str, str | None]:
        """File -> batch of this endpoint and model, as noted; None where the batch's id is not."""
        return {entry["file"]: entry["batch"] for entry in self._entries() if self._is_ours(entry)}

    def _is_ours(self, entry: Mapping[str, object]) -> bool:
        return (entry.get("url"), entry.get("model")) == (self._url, self._name)

    def _entries(self) -> list[dict[str, Any]]:
        if not Path(self._state).exists():
            return []
        text = read_text(self._state)
        try:
            entries = parse_json(text, lenient=True)["batches"]
            if all(isinstance(entry["file"], str) and "batch" in entry for entry in entries):
                return list(entries)
        except (ValueError, KeyError, TypeError):
            pass
        raise FormatError("is no list of batches; name another file", path=self._state)

    def _write(self, ours: Mapping[str, str | None]) -> None:
        entries: list[Mapping[str, object]] = [entry for entry in self._entries() if not self._is_ours(entry)]
        entries += [
            {"file": file, "batch": batch, "url": self._url, "model": self._name} for file, batch in ours.items()
        ]
        if not entries:
            Path(self._state).unlink(missing_ok=True)
            return
        with atomic_writer(self._state) as stream:
            json.dump({"batches": entries}, stream, indent=1)

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        import openai

        try:
            yield
        except openai.APIStatusError as error:
            trouble = trouble_of_status(error.status_code, error.body, None, self._secrets)
            raise BackendError(f"{self._url}: the batch cannot go on: {trouble.error}; {_AGAIN}") from None
        except openai.OpenAIError as error:
            reason = without_key(str(error.__cause__ or error), self._secrets)
            raise BackendError(f"{self._url}: the batch cannot be reached: {reason}; {_AGAIN}") from None


def _path(request: Request) -> str:
    return "/v1/completions" if request.options.get("api") == "completions" else "/v1/chat/completions"

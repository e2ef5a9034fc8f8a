"""The Batch API: requests as a file, replies within a day at half the price; a killed run finds its batches again."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from rubric_measures.base.errors import BackendError
from rubric_measures.base.files import atomic_writer, path_name, read_text
from rubric_measures.base.json_text import decoded, parse_json
from rubric_measures.models.base import Reply, Request
from rubric_measures.models.wire import Endpoint, Known, path_of

# Of one file, by the endpoint's rules (200 MB, of which the last line may take some).
MOST_REQUESTS = 50_000
_MOST_BYTES = 190_000_000
_LONGEST_POLL = 60.0
_ENDED = ("completed", "failed", "expired", "cancelled")
_AGAIN = "run the same command again to continue"


class _Entry(msgspec.Struct):
    """A batch of which replies were not all taken."""

    file: str
    batch: str | None
    url: str
    model: str


class _State(msgspec.Struct):
    """What the state file says."""

    batches: list[_Entry]


_STATES = msgspec.json.Decoder(_State)


@dataclass
class BatchRun:
    """One run over the Batch API; holds no request.

    Requests that are refused for a field that the model does not take, or takes by another name, are sent once more.

    The state file lists the batches whose replies were not all taken. An entry is written before its batch is made and
    removed when the caller has taken all of its replies (and so has them in the cache): a run killed at any moment
    pays for no batch twice.

    Attributes:
        endpoint: what is asked.
        client: its client.
        state: the state file.
        poll: seconds before the second look at a batch.
        most_requests: of one batch.
    """

    endpoint: Endpoint
    client: Any
    state: str | os.PathLike[str]
    poll: float = 5.0
    most_requests: int = MOST_REQUESTS

    def complete(self, requests: Iterable[Request]) -> Iterator[tuple[Request, Reply]]:
        """Answers from the batches of a killed run, then sends what is left in batches and waits for them.

        Raises:
            BackendError: the endpoint cannot be used, or refuses a batch.
            FormatError: the state file is damaged.
        """
        with self._explained():
            earlier = {batch: self._results(batch) for batch in self._known_batches()}
            lines = {key: line for results in earlier.values() for key, line in results.items()}
            chunk: dict[str, list[Request]] = {}
            taken: set[str] = set()
            size = 0
            for request in requests:
                key = request.key
                if key in lines:
                    taken.add(key)
                    if (reply := self._reply(lines[key], request, Known())) is not None:
                        yield request, reply
                        continue
                chunk.setdefault(key, []).append(request)
                size += len(self._line(request))
                if len(chunk) >= self.most_requests or size >= _MOST_BYTES:
                    yield from self._send(chunk)
                    chunk, size = {}, 0
            if chunk:
                yield from self._send(chunk)
            # Replies that this run did not ask for stay with the endpoint until a run does.
            self._forget(batch for batch, results in earlier.items() if results.keys() <= taken)

    def _send(self, chunk: Mapping[str, list[Request]]) -> Iterator[tuple[Request, Reply]]:
        """Makes a batch of requests and waits for it."""
        before = dataclasses.replace(self.endpoint.known, left_out=set(self.endpoint.known.left_out))
        with tempfile.TemporaryFile() as file:
            file.writelines(self._line(requests[0]) for requests in chunk.values())
            file.seek(0)
            uploaded = self.client.files.create(file=("requests.jsonl", file), purpose="batch").id
        self._note({**self._noted(), uploaded: None})
        batch = self.client.batches.create(
            input_file_id=uploaded, endpoint=_path(next(iter(chunk.values()))[0]), completion_window="24h"
        ).id
        self._note({**self._noted(), uploaded: batch})
        results = self._results(batch)
        again: dict[str, list[Request]] = {}
        for key, requests in chunk.items():
            reply = self._reply(results.get(key), requests[0], before)
            if reply is None:
                again[key] = requests
                continue
            if left_out := sorted(before.left_out_of(self.endpoint.on_wire(requests[0]))):
                reply = dataclasses.replace(reply, raw={**reply.raw, "left_out": left_out})
            yield from ((request, reply) for request in requests)
        self._forget([batch])
        if again:
            # Each field is learned once, so this ends.
            yield from self._send(again)

    def _line(self, request: Request) -> bytes:
        call = {"custom_id": request.key, "method": "POST", "url": _path(request), "body": self.endpoint.body(request)}
        return json.dumps(call, ensure_ascii=False).encode("utf-8") + b"\n"

    def _results(self, batch: str) -> dict[str, Mapping[str, Any]]:
        """Waits for a batch; key -> line of its results."""
        pause = self.poll
        while (state := self.client.batches.retrieve(batch)).status not in _ENDED:
            time.sleep(pause)
            pause = min(_LONGEST_POLL, 1.5 * pause)
        if state.status == "failed":
            self._forget([batch])
            errors = getattr(state.errors, "data", None) or []
            reason = "; ".join(str(error.message) for error in errors[:3]) or "no reason given"
            raise BackendError(self.endpoint.shown(f"{self.endpoint.url}: batch {batch} failed: {reason}"))
        found: dict[str, Mapping[str, Any]] = {}
        for file in (state.output_file_id, state.error_file_id):
            content = self.client.files.content(file).read() if file else b""
            for line in content.splitlines():
                with contextlib.suppress(ValueError):  # a line that is no JSON is a reply that never came
                    result = parse_json(line, lenient=True)
                    found[str(result.get("custom_id"))] = result
        return found

    def _reply(self, line: Mapping[str, Any] | None, request: Request, before: Known) -> Reply | None:
        """The reply of a line of results; None where it says how the request can be sent.

        What was known when it was sent is `before`.
        """
        if line is None:
            return Reply(None, "failed", f"the batch ended without this reply; {_AGAIN}")
        answer, endpoint = line.get("response") or {}, self.endpoint
        status, body = answer.get("status_code"), answer.get("body")
        if status == 200:
            found = endpoint.reply_of(json.dumps(body), request)
        else:
            found = endpoint.trouble_of(status or 500, body or {"error": line.get("error")})
            if status and endpoint.learn(status, found.error, endpoint.body(request, before)):
                return None
        return found if isinstance(found, Reply) else Reply(None, found.status, found.error)

    def _known_batches(self) -> list[str]:
        """The batches of earlier runs; one whose id was not noted any more is found by its file."""
        ours = self._noted()
        if None in ours.values():
            ours |= {
                one.input_file_id: one.id for one in self.client.batches.list(limit=100) if one.input_file_id in ours
            }
        # A file without a batch was never sent.
        self._note({file: batch for file, batch in ours.items() if batch})
        return [batch for batch in ours.values() if batch]

    def _forget(self, batches: Iterable[str]) -> None:
        if gone := set(batches):
            self._note({file: batch for file, batch in self._noted().items() if batch not in gone})

    def _entries(self, *, ours: bool) -> list[_Entry]:
        """The entries of the state file that are of this endpoint and model, or those that are not."""
        if not Path(self.state).exists():
            return []
        entries = decoded(_STATES, read_text(self.state).encode("utf-8"), path=path_name(self.state)).batches
        mine = (self.endpoint.url, self.endpoint.name)
        return [entry for entry in entries if ((entry.url, entry.model) == mine) is ours]

    def _noted(self) -> dict[str, str | None]:
        """File -> batch of this endpoint and model; None where the batch's id is not noted yet."""
        return {entry.file: entry.batch for entry in self._entries(ours=True)}

    def _note(self, ours: Mapping[str, str | None]) -> None:
        entries = self._entries(ours=False)
        entries += [_Entry(file, batch, self.endpoint.url, self.endpoint.name) for file, batch in ours.items()]
        if not entries:
            Path(self.state).unlink(missing_ok=True)
            return
        with atomic_writer(self.state) as stream:
            stream.write(msgspec.json.format(msgspec.json.encode(_State(entries)), indent=1).decode())

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        import openai

        try:
            yield
        except openai.APIStatusError as error:
            trouble = self.endpoint.trouble_of(error.status_code, error.body)
            raise BackendError(f"{self.endpoint.url}: the batch cannot go on: {trouble.error}; {_AGAIN}") from None
        except openai.OpenAIError as error:
            reason = self.endpoint.shown(str(error.__cause__ or error))
            raise BackendError(f"{self.endpoint.url}: the batch cannot be reached: {reason}; {_AGAIN}") from None


def _path(request: Request) -> str:
    return f"/v1{path_of(request)}"

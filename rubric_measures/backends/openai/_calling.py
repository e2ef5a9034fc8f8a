"""The engine of a run against OpenAI-compatible endpoints: an event loop in a thread, workers, retries."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import logging
import queue
import random
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rubric_measures.backends.base import Reply, Request
from rubric_measures.backends.openai._endpoints import Call, Endpoint, Sharing
from rubric_measures.backends.openai._known import Known
from rubric_measures.backends.openai._limits import announced
from rubric_measures.backends.openai._wire import (
    Trouble,
    reply_of,
    request_body,
    retry_after,
    trouble_of_status,
    without_key,
)
from rubric_measures.base.errors import BackendError, RejectedError

__all__ = ["CallPolicy", "Engine"]

_LOG = logging.getLogger("rubric_measures")
# Seconds between the first calls, about what making one takes: calls that begin all at once are answered all at once,
# and then each answer waits until the others are read, round after round.
_STAGGER = 0.002
_RAW = {"headers": {"X-Stainless-Raw-Response": "true"}}  # asks the client for the answer with its headers
_GIVE_UP_AFTER_LOST = 100  # calls lost one after the other, each after all its attempts
_GIVE_UP_AFTER_REJECTED = 100  # calls that an endpoint called wrong before any was right


@dataclass(frozen=True)
class CallPolicy:
    """When to try again and when to stop; the settings of `OpenAICompatible` of the same names."""

    concurrency: int = 64
    timeout: float = 300.0
    attempts: int = 6
    patience: float = 600.0
    backoff: float = 0.5
    cooldown: float = 15.0

    def wait_before(self, attempt: int) -> float:
        """The seconds before another attempt: exponential, at most 30, of which the upper half is drawn at random."""
        return min(30.0, self.backoff * 2.0 ** min(attempt, 16)) * random.uniform(0.5, 1.0)


class Engine:
    """Runs calls in an event loop of its own thread; `submit` requests, `drain` replies.

    `make_clients` gives (shown URL, client) of each endpoint, inside of the loop; `on_wire` the request as it is sent;
    `known` what each endpoint showed before, by its shown URL.
    """

    def __init__(
        self,
        name: str,
        make_clients: Callable[[], Sequence[tuple[str, Any]]],
        policy: CallPolicy,
        secrets: tuple[str, ...] = (),
        on_wire: Callable[[Request], Request] = lambda request: request,
        known: Mapping[str, Known] | None = None,
    ) -> None:
        self._name = name
        self._make_clients = make_clients
        self._policy = policy
        self._secrets = secrets
        self._on_wire = on_wire
        self._known = known or {}
        self._done: queue.SimpleQueue[tuple[Request, Reply] | BaseException] = queue.SimpleQueue()
        self._started = threading.Event()
        self._stop = asyncio.Event()
        self._lost = 0
        self.sleeping = 0  # calls that wait before their next attempt
        self._thread = threading.Thread(target=self._main, name="rubric_measures-http", daemon=True)
        self._thread.start()
        self._started.wait()

    def submit(self, requests: Sequence[Request]) -> None:
        """Puts requests in line."""
        self._tell(lambda: self._sharing.add([Call(request) for request in requests]))

    def _tell(self, action: Callable[[], object]) -> None:
        # After a fatal error the loop is gone, and `drain` says why.
        with contextlib.suppress(RuntimeError):
            if self._thread.is_alive():
                self._loop.call_soon_threadsafe(action)

    def drain(self) -> list[tuple[Request, Reply]]:
        """Waits for a reply, and returns it with all others that are there.

        Raises:
            BackendError: nothing can work; all replies that came before were returned.
        """
        found: list[tuple[Request, Reply]] = []
        item = self._done.get()
        while True:
            if isinstance(item, BaseException):
                if found:
                    self._done.put(item)
                    return found
                raise item
            found.append(item)
            try:
                item = self._done.get_nowait()
            except queue.Empty:
                return found

    def close(self) -> None:
        """Ends the thread; calls in flight are dropped."""
        self._tell(self._stop.set)
        self._thread.join()

    def _main(self) -> None:
        try:
            asyncio.run(self._serve())
        except BaseException as error:
            self._done.put(error)
        finally:
            self._started.set()

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        clients = self._make_clients()
        policy = self._policy
        self._sharing = Sharing(
            [
                Endpoint(url, client, policy.concurrency, policy.cooldown, known=self._known.get(url))
                for url, client in clients
            ]
        )
        # The workers of all endpoints begin in turn, so that few calls are spread as well.
        workers = [
            asyncio.create_task(self._work(endpoint, number * _STAGGER))
            for number in range(policy.concurrency)
            for endpoint in self._sharing.endpoints
        ]
        self._started.set()
        try:
            await self._stop.wait()
        finally:
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)
            for _, client in clients:
                await client.close()

    async def _work(self, endpoint: Endpoint, after: float) -> None:
        await asyncio.sleep(after)
        try:
            while await endpoint.ready():
                window = await endpoint.gate.enter()
                if self._stop.is_set():
                    return  # the others are cancelled only after their turn
                if endpoint.up and (call := self._sharing.take(endpoint)) is not None:
                    await self._run(endpoint, call, window)
                    continue
                endpoint.gate.abandon(window)
                if endpoint.up:
                    await self._sharing.wait(endpoint)
        except Exception as error:
            self._fatal(error)

    async def _run(self, endpoint: Endpoint, call: Call, window: int) -> None:
        """Tries a call once: it has its reply then, or stands in line again after a pause of its own."""
        policy, gate = self._policy, endpoint.gate
        call.began = call.began or time.monotonic()
        found = await self._attempt(endpoint, call)
        if isinstance(found, Reply):
            gate.leave(window, False)
            endpoint.succeeded()
            self._lost = 0
            self._deliver(call, found, endpoint)
            return
        call.pay(found.paid)
        if found.kind in ("final", "hopeless"):
            gate.leave(window, False)
            self._settle(endpoint, call, found)
            return
        if found.kind == "busy":
            call.rejections += 1
            # The gate finds the right pace; a call's own wait must not grow beyond what that takes.
            asked = found.wait
            attempt = min(call.rejections - 1, 4)
            wait = policy.wait_before(attempt) if asked is None else asked * random.uniform(1.0, 1.05)
        else:
            call.failures += 1
            wait = max(policy.wait_before(call.failures - 1), found.wait or 0.0)
        gate.leave(window, found.congestion, wait, asked=found.wait is not None)
        if self._given_up(endpoint, call, found, wait):
            return
        if found.kind == "failure" and endpoint.failed():
            self._drop(endpoint)
        self._put_back(call, wait if endpoint.up else 0.0)

    def _put_back(self, call: Call, seconds: float) -> None:
        """Puts a call in line again after some seconds; no worker waits with it."""
        # Someone else's endpoint is as good: no call waits for one that is gone.
        if not seconds:
            self._sharing.add([call], first=True)
            return

        def wake() -> None:
            self.sleeping -= 1
            self._sharing.add([call], first=True)

        self.sleeping += 1
        self._loop.call_later(seconds, wake)

    def _given_up(self, endpoint: Endpoint, call: Call, trouble: Trouble, wait: float) -> bool:
        policy = self._policy
        if trouble.kind == "busy":
            if wait > policy.patience:
                return self._rested(endpoint, trouble, wait)
            if time.monotonic() - call.began + wait <= policy.patience:
                return False
        elif call.failures < policy.attempts:
            return False
        if trouble.unreachable and not any(one.answered for one in self._sharing.endpoints):
            self._fatal(BackendError(f"{endpoint.url}: {trouble.error}; is the server running, and is the URL right?"))
            return True
        self._deliver(call, Reply(None, trouble.status, trouble.error), endpoint)
        self._lost += 1
        if self._lost >= _GIVE_UP_AFTER_LOST:  # no accident
            lost = f"{self._lost} calls in a row failed ({trouble.error})"
            self._fatal(BackendError(f"{endpoint.url}: {lost}; run again to continue"))
        return True

    def _others(self, endpoint: Endpoint) -> list[Endpoint]:
        """The other endpoints that a call may wait for."""
        return [one for one in self._sharing.endpoints if one is not endpoint and not one.closed and not one.resting]

    def _rested(self, endpoint: Endpoint, trouble: Trouble, wait: float) -> bool:
        """Leaves an endpoint alone that asks for more patience than there is; whether that is the end of the run."""
        reason = f"{endpoint.url}: asks to wait {wait:.0f} s ({trouble.error})"
        if not self._others(endpoint):
            self._fatal(BackendError(f"{reason}; run again to continue"))
            return True
        if not endpoint.resting:
            _LOG.warning("%s; until then the others do its work", reason)
        endpoint.rest(wait)
        self._sharing.release(endpoint)
        return False

    def _settle(self, endpoint: Endpoint, call: Call, trouble: Trouble) -> None:
        """Trouble that another attempt would not change."""
        if trouble.kind == "hopeless":
            error = BackendError(f"{endpoint.url}: model {self._name!r} cannot be used: {trouble.error}")
            if not self._ended(endpoint, trouble, error):
                self._sharing.add([call], first=True)
            return
        if trouble.status == "failed" and not endpoint.answered:
            endpoint.rejected += 1
            error = RejectedError(f"{endpoint.url}: no call is accepted at all: {trouble.error}")
            if endpoint.rejected == _GIVE_UP_AFTER_REJECTED and self._ended(endpoint, trouble, error):
                return
        self._deliver(call, Reply(None, trouble.status, trouble.error), endpoint)

    def _ended(self, endpoint: Endpoint, trouble: Trouble, error: BackendError) -> bool:
        """Leaves out an endpoint that takes no call; whether that is the end of the run, as it is the last one."""
        if not self._others(endpoint):
            self._fatal(error)
            return True
        if not endpoint.closed:
            _LOG.warning("%s is not used any more: %s", endpoint.url, trouble.error)
            endpoint.closed = trouble.error
            self._sharing.release(endpoint)
        return False

    def _drop(self, endpoint: Endpoint) -> None:
        if any(one.up for one in self._sharing.endpoints if one is not endpoint):
            _LOG.info("%s keeps failing and is left alone for %.0f s", endpoint.url, endpoint.drop())
            self._sharing.release(endpoint)

    async def _attempt(self, endpoint: Endpoint, call: Call) -> Reply | Trouble:
        import openai

        request, known = call.request, endpoint.known
        asked = self._on_wire(request)
        body = request_body(asked, self._name, known)
        wanted = request.options.get("max_tokens")
        room = body[known.token_field] if isinstance(wanted, int) else 0
        path = "/completions" if request.options.get("api") == "completions" else "/chat/completions"
        try:
            # The raw answer instead of the client's model classes: those cost as much as the rest of the call, and
            # would turn an answer of another shape into an error of theirs.
            async with asyncio.timeout(self._policy.timeout):
                answer = await endpoint.client.post(path, cast_to=bytes, body=body, options=_RAW)
        except openai.APIStatusError as error:
            # The next body is another one, so each of these happens once a call.
            if self._learned(endpoint, error, body):
                return await self._attempt(endpoint, call)
            wait = retry_after(error.response.headers)
            trouble = trouble_of_status(error.status_code, error.body, wait, self._secrets)
            if trouble.is_too_long and isinstance(wanted, int) and known.shorten(room, wanted):
                return await self._attempt(endpoint, call)
            return trouble
        except TimeoutError:
            return Trouble("failure", f"no answer within {self._policy.timeout:g} s", congestion=True)
        except Exception as error:
            # A refused connection comes as a timeout with "Connect" in its name.
            cause = error.__cause__ or error
            kind = type(cause).__name__
            reason = without_key(f"{kind}: {cause}" if str(cause) else kind, self._secrets)
            return Trouble("failure", f"no answer ({reason})", unreachable="Connect" in kind)
        found = reply_of(answer.content, asked, self._secrets)
        if not isinstance(found, Reply):
            return found
        said = announced(answer.headers, max(found.prompt_tokens + max(room, found.completion_tokens), 1))
        if said is not None and said.seconds <= self._policy.patience:
            endpoint.gate.told(*said)
        news = known.learn_from(found)
        if news and found.status == "truncated" and isinstance(wanted, int) and known.longest(wanted) > room:
            # It was cut while it thought, before anybody knew that it does: now it gets room for that.
            call.pay((found.prompt_tokens, found.completion_tokens))
            return await self._attempt(endpoint, call)
        if left_out := sorted(known.left_out.intersection(asked.options).difference(body)):
            found = dataclasses.replace(found, raw={**found.raw, "left_out": left_out})
        return found

    def _learned(self, endpoint: Endpoint, error: Any, body: Mapping[str, Any]) -> bool:
        """Whether an answer with an error status says how the same call can be sent."""
        before = set(endpoint.known.left_out)
        learned = endpoint.known.learn(error.status_code, str(error), body)
        for name in endpoint.known.left_out - before:
            _LOG.warning(
                "%s: the model %s takes no %s of ours: it is left out, and replies are drawn as the model does by "
                "itself (%s)", endpoint.url, self._name, name, without_key(str(error), self._secrets),
            )  # fmt: skip
        return learned

    def _deliver(self, call: Call, reply: Reply, endpoint: Endpoint) -> None:
        if any(call.paid):
            shown, written = reply.prompt_tokens + call.paid[0], reply.completion_tokens + call.paid[1]
            reply = dataclasses.replace(reply, prompt_tokens=shown, completion_tokens=written)
        if len(self._sharing.endpoints) > 1:
            reply = dataclasses.replace(reply, raw={**reply.raw, "endpoint": endpoint.url})
        self._done.put((call.request, reply))

    def _fatal(self, error: Exception) -> None:
        self._done.put(error)
        self._stop.set()

"""Calls to an endpoint: one gate for all, tries, pauses, what the endpoint can do.

The gate in front of an endpoint: how many calls may be in flight, how fast they begin, when all of them wait.

The engine of a run against an OpenAI-compatible endpoint: an event loop in a thread, workers, retries.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import queue
import random
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import inf, sqrt
from typing import Any

from rubric_measures.base.errors import BackendError, InputError, warn
from rubric_measures.models.base import Reply, Request
from rubric_measures.models.wire import STRUCTURED_MODES, Endpoint, Trouble, retry_after

_SPAN = 0.5  # seconds that a window takes at least
_FEW, _OVERLOAD = 0.15, 0.7  # shares of rejections
_BELOW = 0.95
_GROWTH = 1.1
_ALIKE = 2  # cuts of the pace that changed nothing
_LOOK_AGAIN = 0.25  # seconds


class Gate:
    """One shared limit for an endpoint's calls: a ceiling of calls in flight, and a pace once calls are turned away.

    Answers are judged in windows of half a second or more. With s the share of rejections in a window (less what
    chance may do) and g the calls per second that were not turned away:

    - s > 0.15: the pace becomes 0.95 g, so that the next calls begin one by one, as fast as the endpoint takes them.
    - else the pace grows by a tenth. When nobody had to wait for it, there is none.
    - s is as high after cuts as before: the endpoint rejects at random. Then there is no pace, and so much is let pass.
    - s > 0.7: everyone pauses for as long as the endpoint asked; where it did not say, each further pause without an
      answer in between is twice as long, up to 64 times.

    A rejected call waits by itself, and is no reason for the others to wait. Used from one event loop only.
    """

    def __init__(self, ceiling: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.ceiling = ceiling
        self.in_flight = 0
        self._clock = clock
        self._turn = asyncio.Lock()
        self._free = asyncio.Event()
        self._last_start = -inf
        self._window = self._pauses = 0
        self.limit = float(ceiling)
        self.pace = inf
        self._pause_until = 0.0
        self._few = _FEW
        self._share_before, self._alike = 0.0, 0  # rejections at the last cut; cuts in a row that changed nothing
        self._begin_window()

    async def enter(self) -> int:
        """Waits, first come first served, for a slot and a turn; the caller gives them back by `leave`.

        Returns:
            the number of the window in which the call begins, for `leave`.
        """
        async with self._turn:
            while True:
                now = self._clock()
                if self._pause_until and now >= self._pause_until:
                    self._pause_until = 0.0
                    self._begin_window()
                next_start = self._last_start + 1 / self.pace
                left = max(self._pause_until, next_start) - now
                if self.in_flight >= int(self.limit):
                    self._free.clear()
                    await self._free.wait()
                elif left > 0:
                    self._delayed += 1
                    # The pace may be raised, or a pause begin, in the meantime.
                    await asyncio.sleep(min(left, _LOOK_AGAIN))
                else:
                    break
            # Late sleepers may catch up a little, so that a high pace is kept.
            self._last_start = max(next_start, now - _LOOK_AGAIN / 10)
            self.in_flight += 1
            self._started += 1
            return self._window

    def leave(self, window: int, rejected: bool, pause: float = 0.0, *, asked: bool = False) -> None:
        """Gives a slot back after an answer; `window` is what `enter` returned.

        A rejection says that the endpoint has too much to do (or did not answer in time). If most answers are
        rejections, nobody calls for `pause` seconds, which the endpoint `asked` for or not.
        """
        if not rejected:
            self._pauses = 0
            self.limit = min(float(self.ceiling), self.limit + 1)
        # Calls that began earlier say nothing about the pace of now.
        if window == self._window and not self._pause_until:
            self._answers += 1
            self._rejections += rejected
            if self._is_enough():
                self._judge(pause, asked)
                self._begin_window()
        self.in_flight -= 1
        self._free.set()

    def _begin_window(self) -> None:
        self._window += 1
        self._window_from = self._clock()
        self._answers = self._rejections = self._started = self._delayed = 0

    def _is_enough(self) -> bool:
        """Whether the window is at its end. A few rejections among a few answers may be an accident."""
        elapsed = self._clock() - self._window_from
        if self.pace == inf:
            # Where most calls are turned away at once, half a second is too long.
            return self._answers >= max(4, int(self.limit)) and (
                elapsed >= _SPAN or self._rejections > 0.4 * self._started
            )
        is_clear = not self._rejections or self._rejections > _OVERLOAD * self._started
        return elapsed >= _SPAN and self._answers >= (4 if is_clear else 16)

    def _judge(self, pause: float, asked: bool) -> None:
        # Rejections come back sooner than replies: what has no answer yet counts as accepted.
        share = self._rejections / self._started
        if self._rejections <= self._few * self._started + sqrt(self._started) / 4:
            self._speed_up()
        else:
            self._slow_down(share)
        if share > _OVERLOAD and pause > 0:
            self._pause_until = self._clock() + (pause if asked else pause * 2.0 ** min(self._pauses, 6))
            self._pauses += 1

    def _slow_down(self, share: float) -> None:
        accepted = (self._started - self._rejections) / max(self._clock() - self._window_from, _SPAN)
        if self.pace == inf:
            # The first answers say little about the rate; it is found from below.
            self.pace = max(_BELOW * accepted, self.ceiling / 8)
            self._share_before, self._few = 0.0, _FEW
        elif share > _OVERLOAD:
            # Where nothing is taken, nobody knows what will be after the pause: at least one call a second tells.
            self.pace = _BELOW * accepted or max(1.0, self.pace / 2)
            self._share_before, self._few = 0.0, _FEW
        elif self._is_random(share):
            self.pace, self._few = inf, _OVERLOAD
        else:
            self.pace = _BELOW * accepted

    def _is_random(self, share: float) -> bool:
        """Whether rejections are as frequent as before the pace was cut, again and again: then it is not the cause."""
        self._alike = self._alike + 1 if 0 < self._share_before <= 2 * share else 0
        self._share_before = share
        return self._alike >= _ALIKE

    def _speed_up(self) -> None:
        self._share_before = 0.0
        if not self._delayed:
            self.pace = inf  # nobody had to wait for it
        else:
            if not self._rejections:
                self._few = _FEW
            self.pace *= _GROWTH


# Seconds between the first calls, about what making one takes: calls that begin all at once are answered all at once,
# and then each answer waits until the others are read, round after round.
_STAGGER = 0.002
_GIVE_UP_AFTER = 100  # calls that failed one after the other
_SCHEMA = "response_format"


@dataclass(frozen=True)
class EndpointSettings:
    """The settings of `OpenAICompatible`, which says what they mean."""

    endpoint_name: str = ""
    structured: str = "off"
    concurrency: int = 64
    timeout: float = 300.0
    attempts: int = 6
    patience: float = 600.0
    backoff: float = 0.5
    context_tokens: int | None = None
    thinking_tokens: int | None = None

    def __post_init__(self) -> None:
        modes = (*STRUCTURED_MODES, *(f"{mode}+logprobs" for mode in STRUCTURED_MODES))
        if self.structured not in modes:
            raise InputError(f"structured is {self.structured!r}; expected one of {', '.join(modes)}")
        for name in ("concurrency", "attempts", "timeout"):
            if (value := getattr(self, name)) <= 0:
                raise InputError(f"{name} is {value}; expected more than 0")

    def wait_before(self, attempt: int) -> float:
        """The seconds before another attempt: exponential, at most 30, of which the upper half is drawn at random."""
        return min(30.0, self.backoff * 2.0 ** min(attempt, 16)) * random.uniform(0.5, 1.0)


@dataclass(slots=True)
class _Call:
    """One request under way: how often it failed and was turned away, since when it is tried, and what that cost.

    `paid` are the tokens, shown and written, of answers that were no reply.
    """

    request: Request
    failures: int = 0
    rejections: int = 0
    began: float = 0.0
    paid: tuple[int, int] = (0, 0)

    def pay(self, tokens: tuple[int, int]) -> None:
        """Counts tokens of an answer that was no reply."""
        self.paid = self.paid[0] + tokens[0], self.paid[1] + tokens[1]


class Engine:
    """Runs calls in an event loop of its own thread; `submit` requests, take each `reply`.

    `make_client` gives the client of the endpoint, inside of the loop. Once `interrupted`, no further attempt begins.
    """

    def __init__(self, endpoint: Endpoint, make_client: Callable[[], Any], policy: EndpointSettings) -> None:
        self._endpoint, self._make_client, self._policy = endpoint, make_client, policy
        self.interrupted = threading.Event()
        self._gate = Gate(policy.concurrency)
        if not endpoint.answered:
            # A wrong key, or a field that it does not take, costs one call; each answer allows one more.
            self._gate.limit = 1.0
        self._line: deque[_Call] = deque()  # calls that wait for their turn
        self._waiting = asyncio.Semaphore(0)
        self._done: queue.SimpleQueue[tuple[Request, Reply] | BaseException] = queue.SimpleQueue()
        self._stop = asyncio.Event()
        self._tried_bare = False  # whether a call that failed was sent again without its schema
        self._lost = 0  # calls that failed since the last reply
        self._trouble = ""  # why the last call was not answered
        self._quiet = 10.0  # seconds without a reply after which that is said, once
        self.sleeping = 0  # calls that wait before their next attempt
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._main, name="rubric_measures-http", daemon=True)
        self._thread.start()

    def submit(self, requests: Sequence[Request]) -> None:
        """Puts requests in line."""
        self._tell(lambda: self._stand_in_line(map(_Call, requests)))

    def _stand_in_line(self, calls: Iterable[_Call], *, first: bool = False) -> None:
        for call in calls:
            (self._line.appendleft if first else self._line.append)(call)
            self._waiting.release()

    def _tell(self, action: Callable[[], object]) -> None:
        # After a fatal error the loop is gone, and `reply` says why.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(action)

    def reply(self) -> tuple[Request, Reply] | None:
        """Waits for the next reply, and says once what is waited for; None where it is stopped and nothing in flight.

        Raises:
            BackendError: nothing can work; all replies that came before were returned.
        """
        began, idle = time.monotonic(), 0
        # A call is no longer in flight a moment before its reply is there.
        while idle < 2:
            with contextlib.suppress(queue.Empty):
                found = self._done.get(timeout=_LOOK_AGAIN)
                if isinstance(found, BaseException):
                    raise found
                return found
            idle += self.interrupted.is_set() and not self._gate.in_flight
            # A model may take longer than that; calls that are all turned away are another thing.
            if self.sleeping and not self._gate.in_flight and time.monotonic() - began > self._quiet:
                text = "no reply for %d s, and %d calls wait for another attempt: %s"
                warn(text, self._quiet, self.sleeping + len(self._line), self._trouble)
                self._quiet = inf
        return None

    def close(self) -> None:
        """Ends the thread; calls in flight are dropped."""
        self._tell(self._stop.set)
        self._thread.join()

    def _main(self) -> None:
        try:
            with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
                runner.run(self._serve())
        except BaseException as error:
            self._done.put(error)

    async def _serve(self) -> None:
        self._client = self._make_client()
        workers = [asyncio.create_task(self._work(number * _STAGGER)) for number in range(self._policy.concurrency)]
        try:
            await self._stop.wait()
        finally:
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)
            await self._client.close()

    async def _work(self, after: float) -> None:
        await asyncio.sleep(after)
        try:
            while True:
                await self._waiting.acquire()
                window = await self._gate.enter()
                if self._stop.is_set() or self.interrupted.is_set():
                    self._gate.in_flight -= 1
                    return  # the others are cancelled only after their turn
                await self._run(self._line.popleft(), window)
        except Exception as error:
            self._fatal(error)

    async def _run(self, call: _Call, window: int) -> None:
        """Tries a call once: it has its reply then, or stands in line again after a pause of its own."""
        policy, gate = self._policy, self._gate
        call.began = call.began or time.monotonic()
        found = await self._attempt(call)
        if isinstance(found, Reply):
            if not self._endpoint.answered:
                self._endpoint.answered = True
                gate.limit = float(gate.ceiling)
            gate.leave(window, False)
            self._lost = 0
            self._deliver(call, found)
            return
        call.pay(found.paid)
        self._trouble = found.error
        if found.kind in ("final", "hopeless"):
            gate.leave(window, False)
            if found.kind == "final":
                self._fail(call, found)
            else:
                self._end(f"model {self._endpoint.name!r} cannot be used: {found.error}")
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
        if not self._given_up(call, found, wait):
            self._put_back(call, wait)

    def _put_back(self, call: _Call, seconds: float) -> None:
        """Puts a call in line again after some seconds; no worker waits with it."""

        def wake() -> None:
            self.sleeping -= 1
            self._stand_in_line([call], first=True)

        self.sleeping += 1
        self._loop.call_later(seconds, wake)

    def _given_up(self, call: _Call, trouble: Trouble, wait: float) -> bool:
        policy, reason = self._policy, trouble.error
        if trouble.kind == "busy":
            if wait > policy.patience:
                self._end(f"the endpoint asks to wait {wait:.0f} s ({reason}); run again to continue")
                return True
            if time.monotonic() - call.began + wait <= policy.patience:
                return False
        elif call.failures < policy.attempts:
            return False
        if trouble.unreachable and not self._endpoint.answered:
            self._end(f"{reason}; is the server running, and is the URL right?")
            return True
        self._fail(call, trouble)
        return True

    def _fail(self, call: _Call, trouble: Trouble) -> None:
        self._deliver(call, Reply(None, trouble.status, trouble.error))
        self._lost += trouble.status == "failed"
        if self._lost >= _GIVE_UP_AFTER:  # no accident
            self._end(f"{self._lost} calls in a row failed: {trouble.error}")

    async def _attempt(self, call: _Call) -> Reply | Trouble:
        import openai

        request, endpoint = call.request, self._endpoint
        body = endpoint.body(request)
        wanted = request.options.get("max_tokens")
        room = body[endpoint.token_field] if isinstance(wanted, int) else 0
        try:
            # Bytes instead of the client's model classes: those cost as much as the rest of the call, and would turn an
            # answer of another shape into an error of theirs.
            async with asyncio.timeout(self._policy.timeout):
                answer = await self._client.post("/chat/completions", cast_to=bytes, body=body)
        except openai.APIStatusError as error:
            # The next body is another one, so each of these happens once a call.
            if endpoint.learn(error.status_code, str(error), body):
                return await self._attempt(call)
            wait = retry_after(error.response.headers)
            trouble = endpoint.trouble_of(error.status_code, error.body, wait)
            is_told = trouble.kind == "final" or (trouble.kind == "failure" and call.failures)
            if endpoint.held or _SCHEMA not in body or not is_told:
                return trouble
            # A schema may be refused without a word; an accident of the server does not come twice. One call finds out,
            # and those that were sent with it meanwhile are sent again.
            is_first = _SCHEMA not in endpoint.left_out
            if is_first and self._tried_bare:
                return trouble
            self._tried_bare = True
            endpoint.left_out.add(_SCHEMA)
            found = await self._attempt(call)
            if is_first:
                endpoint.left_out.discard(_SCHEMA)
                if isinstance(found, Reply):
                    endpoint.leave_out(_SCHEMA, trouble.error)
                else:
                    self._tried_bare = found.kind != "busy"
            return found
        except TimeoutError:
            return Trouble("failure", f"no answer within {self._policy.timeout:g} s", congestion=True)
        except Exception as error:
            # A refused connection comes as a timeout with "Connect" in its name.
            cause = error.__cause__ or error
            kind = type(cause).__name__
            reason = endpoint.shown(f"{kind}: {cause}" if str(cause) else kind)
            return Trouble("failure", f"no answer ({reason})", unreachable="Connect" in kind)
        found = endpoint.reply_of(answer, request)
        if not isinstance(found, Reply):
            return found
        endpoint.held |= _SCHEMA in body
        news = endpoint.learn_from(found)
        if news and found.status == "truncated" and isinstance(wanted, int) and endpoint.longest(wanted) > room:
            # It was cut while it thought, before anybody knew that it does: now it gets room for that.
            call.pay((found.prompt_tokens, found.completion_tokens))
            return await self._attempt(call)
        if endpoint.left_out and (left_out := sorted(endpoint.body(request, whole=True).keys() - body.keys())):
            found = dataclasses.replace(found, raw={**found.raw, "left_out": left_out})
        return found

    def _deliver(self, call: _Call, reply: Reply) -> None:
        if any(call.paid):
            shown, written = reply.prompt_tokens + call.paid[0], reply.completion_tokens + call.paid[1]
            reply = dataclasses.replace(reply, prompt_tokens=shown, completion_tokens=written)
        self._done.put((call.request, reply))

    def _end(self, problem: str) -> None:
        self._fatal(BackendError(f"{self._endpoint.url}: {problem}"))

    def _fatal(self, error: Exception) -> None:
        self._done.put(error)
        self._stop.set()

"""The Ray runner on a real Ray: the local runner's results, whatever dies, leaves, is poisoned or interrupted."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

ray = pytest.importorskip("ray")

from rubric_measures.base.errors import BackendError, InputError  # noqa: E402
from rubric_measures.cli import main  # noqa: E402
from rubric_measures.formats.banks import write_bank  # noqa: E402
from rubric_measures.grading.asking import Asking  # noqa: E402
from rubric_measures.grading.grader import GradingEngine, GradingReport  # noqa: E402
from rubric_measures.models import make_backend  # noqa: E402
from rubric_measures.models.ray_runner import QUIET, RayRunner, connected, ray_runner  # noqa: E402
from rubric_measures.models.replies import ReplyCache  # noqa: E402
from rubric_measures.models.running import LocalRunner, Price  # noqa: E402
from rubric_measures.records.models import QueryPassages, write_graded  # noqa: E402
from rubric_measures.types.entities import TestBank  # noqa: E402
from tests.grading_data import make_bank, make_groups, write_inputs  # noqa: E402
from tests.ray_backends import Diary, make_diary  # noqa: E402

# What Ray's own modules warn of is not ours to mend.
pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
ROOT = Path(__file__).parents[2]
RATING = "QuestionSelfRatedUnanswerablePromptWithChoices"
CHECKED = "QuestionCompleteConcisePromptWithT5VerifiedAnswerKey2"
PATIENCE = 300.0  # seconds after which a test that waits has failed
TWO = Price(0, 2e6)  # every call costs 2, which only its reply tells


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """A cluster on this machine with a head of two processors; this process and others join it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", f"{ROOT}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
        # Nodes of the cluster get the settings of a quiet Ray before the first one starts.
        for name, value in QUIET.items():
            patch.setenv(name, value)
        # A node that is gone is found gone within seconds.
        patch.setenv("RAY_health_check_period_ms", "500")
        from ray.cluster_utils import Cluster

        made = Cluster(
            initialize_head=True,
            head_node_args={"num_cpus": 2, "include_dashboard": False, "object_store_memory": 100 << 20},
        )
        with connected(made.address):
            yield made
        made.shutdown()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "diary"
    made.mkdir()
    return made


def wait_until(true: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < end
        time.sleep(0.02)


def calls(folder: Path) -> list[tuple[str, str]]:
    """(process, key) of every call that an actor made."""
    path = folder / "calls"
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return [(process, key) for process, _, key in (line.partition("\t") for line in lines)]


def graded(
    runner: LocalRunner, groups: list[QueryPassages], bank: TestBank, **settings: Any
) -> tuple[list[dict[str, Any]], GradingReport]:
    report = GradingReport()
    grader = GradingEngine(
        runner.backend, bank, () if runner.backend.model.startswith("lexical") else (RATING,), Asking(**settings)
    )
    records = [
        {"query": group.query_id, "passages": [passage.as_json() for passage in group.passages]}
        for group in grader.grade_records(groups, runner, report)
    ]
    return records, report


def statuses(report: GradingReport) -> dict[str, int]:
    return dict(report.by_status)


def diary(folder: Path, cache: ReplyCache | None = None, actors: int = 2, batch: int = 2, **options: Any) -> RayRunner:
    limits = {name: options.pop(name) for name in ("max_calls", "max_cost", "price", "progress") if name in options}
    make = partial(make_diary, str(folder), **options)
    return RayRunner(
        make(),
        ReplyCache(":memory:") if cache is None else cache,
        make=make,
        actors=actors,
        batch_size=batch,
        **limits,
    )


def test_retries_replicates_and_failures_are_those_of_the_local_runner(cluster: Any, tmp_path: Path) -> None:
    table = tmp_path / "table.jsonl"
    table.write_text(
        '{"contains": " 1.", "replicate": 0, "reply": "well"}\n'
        '{"contains": " 1.", "replicate": 1000, "reply": "5"}\n'
        '{"contains": " 2.", "reply": null, "status": "refused", "error": "no"}\n'
        '{"contains": " 3.", "reply": "perhaps", "prompt_tokens": 7}\n'
        '{"contains": "leap", "reply": "4"}\n{"contains": "sun", "reply": "4"}\n{"reply": "2", "raw": {"model": "m"}}\n'
    )
    groups, bank = make_groups(2, 5), make_bank(2, 3)
    runner = ray_runner(f"scripted:{table}", {}, 2, None, 2, "")
    with ReplyCache(":memory:") as one, ReplyCache(":memory:") as two:
        drawn = {"replicates": 3, "temperature": 1.0, "retries": 2}
        local, expected = graded(LocalRunner(runner.backend, one), groups, bank, **drawn)
        mine, report = graded(replace(runner, cache=two), groups, bank, **drawn)
        assert mine == local
        assert report == expected
        assert report.run.redrawn > 0
        assert set(statuses(report)) == {"graded", "refused", "unparsed"}
        assert {key for key, *_ in one.entries()} == {key for key, *_ in two.entries()}


def both(tmp_path: Path, capsys: pytest.CaptureFixture[str], command: list[str], *ray: str) -> tuple[int, str, bytes]:
    """What a command says and writes, which is the same on Ray, to the byte, with the same costs and counts."""
    found = []
    for name, more in (("local", []), ("ray", ["--runner", "ray", "--actors", "2", *ray])):
        (tmp_path / name).mkdir(exist_ok=True)
        out = tmp_path / name / "out.jsonl"
        code = main([*command, *more, "-o", str(out)])
        manifest = Path(f"{out}.manifest.json").read_text().replace(str(out), "OUT")
        found.append((code, capsys.readouterr().err, out.read_bytes(), manifest))
    assert found[1] == found[0]
    return found[0][:3]


def over_http(folder: Path, *rules: dict[str, object]) -> tuple[Any, list[str]]:
    """A server that is about to start, and the passages and the bank of a command."""
    pytest.importorskip("openai")
    from tests.fault_server import running as serving

    replies, passages, bank = folder / "replies.jsonl", folder / "passages.jsonl", folder / "bank.jsonl"
    replies.write_text("".join(json.dumps(rule) + "\n" for rule in rules))
    write_graded(passages, make_groups(1, 3))
    write_bank(bank, make_bank(1, 3, gold=True))
    return lambda **more: serving(replies=replies, **more), [
        "grade",
        str(passages),
        "--bank",
        str(bank),
        "--model",
        "openai:m",
    ]


def test_answers_are_checked_by_a_model_behind_an_endpoint_as_locally(
    cluster: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Checks follow answers, and both may be drawn again; the second check of an item stays unreadable."""
    # Each passage has an answer of its own: equal checks would be shared, or cached, as they happen to come.
    answers = [{"contains": f" {place}.", "reply": f"words {'abc'[place]}"} for place in range(3)]
    checks = [{"contains": text, "reply": reply} for text, reply in ((" 1?", "hm"), (" 2?", "no"), ("", "yes"))]
    serving, command = over_http(tmp_path, *answers, *checks)
    with serving() as server:
        command += ["--prompt", CHECKED, "--retries", "2", "--base-url", server.url]
        code, said, _ = both(tmp_path, capsys, command, "--batch-size", "1")
    assert code == 1
    assert "3 of 9 are not graded: 3 unparsed" in said


def _open_when(folder: Path, true: Callable[[], bool], then: Callable[[], Any] = lambda: None) -> Any:
    """A thread that opens the diary's gate as soon as something is true."""

    def watch() -> None:
        wait_until(true)
        then()
        (folder / "open").touch()

    thread = threading.Thread(target=watch)
    thread.start()
    return thread


def test_a_killed_actor_is_replaced_and_its_block_redone(
    cluster: Any, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    groups, bank = make_groups(2, 5), make_bank(2, 3)
    local, expected = graded(LocalRunner(Diary(folder)), groups, bank)
    (folder / "calls").unlink()
    mine, report = graded(diary(folder, kills_once=" 3."), groups, bank)
    assert (folder / "killed").exists()
    assert mine == local
    assert report == expected
    made = Counter(key for _, key in calls(folder))
    assert len(made) == 30
    # Only what was under way went out once more: at most two blocks an actor, of two passages each.
    assert 0 < made.total() - 30 <= 24
    assert "a process of the Ray pool died" in caplog.text


def test_a_poisoned_input_fails_its_own_grades(cluster: Any, folder: Path) -> None:
    groups, bank = make_groups(2, 5), make_bank(2, 3)
    poison = groups[0].passages[3].text
    mine, report = graded(diary(folder, actors=1, batch=4, raises=poison), groups, bank)
    assert statuses(report) == {"graded": 27, "failed": 3}
    [entry] = mine[0]["passages"][3]["exam_grades"]
    assert set(entry["item_status"].values()) == {"failed"}
    assert set(entry["llm_response_errors"].values()) == {
        "processes of actors died over this passage (ValueError: poison)"
    }
    assert report.run.failed == 3


def test_a_node_that_leaves_shrinks_the_pool(cluster: Any, folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    groups, bank = make_groups(2, 9), make_bank(2, 2)
    local, expected = graded(LocalRunner(Diary(folder)), groups, bank)
    (folder / "calls").unlink()
    node = cluster.add_node(num_cpus=1, object_store_memory=100 << 20)
    wait_until(lambda: ray.cluster_resources().get("CPU", 0) == 3)
    # Three actors of one processor each: one of them can only be on the new node, and is in mid-block when it leaves.
    three = diary(folder, actors=3, batch=1, gate="What")

    def processes() -> set[int]:
        return {int(process) for process, _ in calls(folder)}

    def remove() -> None:
        cluster.remove_node(node, False)
        # The actor outlives its node for a moment, in which it could answer its block through the open gate.
        wait_until(lambda: not all(map(running, processes())))

    opener = _open_when(folder, lambda: len(processes()) == 3, remove)
    mine, report = graded(three, groups, bank)
    opener.join()
    assert mine == local
    assert report == expected
    assert "a process of the Ray pool died" in caplog.text


def test_limits_stop_and_the_next_run_goes_on(cluster: Any, folder: Path) -> None:
    groups, bank = make_groups(1, 4), make_bank(1, 3)
    with ReplyCache(":memory:") as cache:
        _, report = graded(diary(folder, cache, max_calls=5, price=TWO), groups, bank)
        assert report.run.limit == "the limit of 5 calls was reached"
        assert len(cache) == len(calls(folder)) == report.run.calls == 5
        # The five calls cost 10, so two more may be made: a third would pass the limit.
        _, report = graded(diary(folder, cache, actors=1, max_cost=15, price=TWO), groups, bank)
        paid = "the limit of 15 on the cost was reached"
        assert (report.run.limit, len(cache), len(calls(folder))) == (paid, 7, 7)
        _, report = graded(diary(folder, cache, max_calls=0), groups, bank)
        assert (report.run.cached, report.run.missing, report.run.calls) == (7, 5, 0)
        _, report = graded(diary(folder, cache, actors=1), groups, bank)
        assert (report.run.cached, report.run.calls) == (7, 5)
    assert len(calls(folder)) == 12
    # Without a ledger only the first call shows that one costs 2.
    _, report = graded(diary(folder, actors=1, max_cost=5, price=TWO), groups, bank)
    assert (report.run.limit, report.run.calls) == ("the limit of 5 on the cost was reached", 2)


def test_a_model_that_cannot_be_used_is_one_line(cluster: Any, folder: Path) -> None:
    groups, bank = make_groups(1, 2), make_bank(1, 2)
    with pytest.raises(BackendError, match="no such model"):
        graded(diary(folder, actors=1, hopeless=True), groups, bank)
    # What was answered before it was gone is kept.
    with ReplyCache(":memory:") as cache:
        with pytest.raises(BackendError, match="the model is gone"):
            graded(diary(folder, cache, actors=1, ends=" 1."), groups, bank)
        assert len(cache) == 2
    runner = RayRunner(make_backend("lexical"), make=partial(make_diary, str(folder)), actors=1)
    with pytest.raises(BackendError, match="model is 'diary' here and 'lexical:1' in the driver"):
        graded(runner, groups, bank)


def start(folder: Path, options: dict[str, Any], arguments: list[str]) -> subprocess.Popen[str]:
    program = (
        f"import sys; from tests.ray_backends import drive; sys.exit(drive({str(folder)!r}, {options!r}, sys.argv[1:]))"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        start_new_session=True,
    )
    # A process that hangs fails its test instead of hanging all.
    watch = threading.Timer(PATIENCE, process.kill)
    watch.daemon = True
    watch.start()
    return process


def stored(cache: Path) -> int:
    with contextlib.suppress(InputError), ReplyCache(cache, read_only=True) as opened:
        return len(opened)
    return 0


def until_only_the_gate_is_open(process: subprocess.Popen[str], folder: Path, cache: Path) -> int:
    """Waits until one call is at the gate and all others that were made are kept; how many."""

    def so() -> bool:
        kept = stored(cache)
        return (folder / "waiting").exists() and len(calls(folder)) == kept + 1

    wait_until(lambda: process.poll() is not None or so())
    assert process.poll() is None, process.communicate()
    return stored(cache)


def command(tmp_path: Path, *more: str) -> tuple[list[str], Path]:
    passages, bank = write_inputs(tmp_path, queries=1, passages=6, items=2)
    out = tmp_path / "out.jsonl"
    inputs = [str(passages), "--bank", str(bank), "--model", "openai:x", "--prompt", RATING, "-o", str(out)]
    return ["grade", *inputs, "--runner", "ray", "--actors", "1", "--batch-size", "1", *more], out


def test_a_killed_driver_loses_only_blocks_in_flight(cluster: Any, folder: Path, tmp_path: Path) -> None:
    arguments, out = command(tmp_path, "--ray-address", cluster.address)
    cache = Path(f"{out}.cache.sqlite")
    with start(folder, {"gate": " 3."}, arguments) as process:
        kept = until_only_the_gate_is_open(process, folder, cache)
        process.send_signal(signal.SIGKILL)
        process.communicate()
    assert process.returncode == -signal.SIGKILL
    assert not out.exists()
    assert stored(cache) == kept
    before = Counter(key for _, key in calls(folder))
    with start(folder, {}, arguments) as process:
        _, errors = process.communicate(timeout=PATIENCE)
    assert (process.returncode, errors.count("\n")) == (0, 1), errors
    assert f"12 grades of 6 passages: {12 - kept} calls, " in errors
    # Nothing that was kept was asked again: of the calls before, only that at the gate.
    after = Counter(key for _, key in calls(folder))
    assert (len(after), after.total()) == (12, 13)
    assert len(after - before) == 12 - kept
    with ReplyCache(cache) as opened:
        groups, bank = make_groups(1, 6), make_bank(1, 2)
        _, report = graded(LocalRunner(Diary(folder), opened, max_calls=0), groups, bank)
    assert statuses(report) == {"graded": 12}


def running(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_ctrl_c_keeps_the_blocks_in_flight_and_stops(folder: Path, tmp_path: Path) -> None:
    """A Ray of its own, and the interrupt goes to all processes, as from a terminal."""
    arguments, out = command(tmp_path)
    cache = Path(f"{out}.cache.sqlite")
    with start(folder, {"gate": " 2."}, arguments) as process:
        kept = until_only_the_gate_is_open(process, folder, cache)
        os.killpg(process.pid, signal.SIGINT)
        time.sleep(2)
        (folder / "open").touch()
        printed, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert f"warning: {kept + 4} calls of this run are in the cache: run again to continue\n" in errors
    assert printed == ""
    assert stored(cache) == len(calls(folder)) == kept + 4
    assert not out.exists()


def test_the_command_line_gives_the_same_bytes(
    cluster: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    passages, bank = write_inputs(tmp_path)
    base = ["grade", str(passages), "--bank", str(bank), "--model", "lexical"]
    assert main([*base, "-o", str(tmp_path / "local.jsonl.gz")]) == 0
    more = ["--runner", "ray", "--actors", "2", "--batch-size", "1"]
    assert main([*base, "-o", str(tmp_path / "ray.jsonl.gz"), *more]) == 0
    one, two = capsys.readouterr().err.splitlines()
    assert one == two
    assert (tmp_path / "local.jsonl.gz").read_bytes() == (tmp_path / "ray.jsonl.gz").read_bytes()
    manifests = [(tmp_path / f"{name}.jsonl.gz.manifest.json").read_text() for name in ("local", "ray")]
    assert manifests[0].replace("local.jsonl", "ray.jsonl") == manifests[1]
    assert main([*base, "-o", str(tmp_path / "x.jsonl"), *more, "--dry-run"]) == 0
    assert capsys.readouterr().out.splitlines()[1].split("\t")[:2] == ["LexicalCoverage", "24"]


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def test_an_address_where_nobody_listens_is_said_at_once(tmp_path: Path) -> None:
    """Ray itself tries for a quarter of an hour, and says nothing."""
    passages, bank = write_inputs(tmp_path)
    command = [sys.executable, "-m", "rubric_measures", "grade", str(passages), "--bank", str(bank)]
    address = f"127.0.0.1:{free_port()}"
    done = subprocess.run(
        [*command, "--model", "lexical", "--runner", "ray", "--ray-address", address, "-o", str(tmp_path / "o")],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 2
    assert f"the Ray cluster at {address} cannot be joined: " in done.stderr
    assert "Connection refused" in done.stderr


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        (["--actors", "0"], "actors is 0; expected a number from 1"),
        (["--gpus-per-actor", "1.5"], "a whole number, or a share below 1"),
        (["--batch-size", "-1"], "batch_size is -1"),
        (["--ray-address", "ray://host:10001"], "expected HOST:PORT or auto"),
    ],
)
def test_wrong_options_are_one_line_and_code_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], more: list[str], expected: str
) -> None:
    passages, bank = write_inputs(tmp_path)
    command = ["grade", str(passages), "--bank", str(bank), "--model", "lexical", "-o", str(tmp_path / "o.jsonl")]
    assert main([*command, "--runner", "ray", *more]) == 2
    errors = capsys.readouterr().err
    assert expected in errors
    assert errors.count("\n") == 1

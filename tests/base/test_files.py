"""Tests of reading and writing files: gzip by content, damage, BOM, line ends, output whole or not, and garbage."""

from __future__ import annotations

import gzip
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from rubric_measures.base.errors import FormatError, InputError
from rubric_measures.base.files import atomic_writer, iter_lines, read_text


def test_gzip_is_told_by_content_not_by_name(tmp_path: Path) -> None:
    packed = tmp_path / "plain.txt"
    packed.write_bytes(gzip.compress("\ufeffü\r\n\r\nb\n".encode()))
    assert list(iter_lines(packed)) == [(1, "ü".encode()), (3, b"b")]
    plain = tmp_path / "named.gz"
    plain.write_bytes(b"a\nb")
    assert read_text(plain) == "a\nb"


def test_a_truncated_or_damaged_gzip_is_an_error(tmp_path: Path) -> None:
    whole = gzip.compress(os.urandom(100_000))
    path = tmp_path / "x.gz"
    path.write_bytes(whole[:-9])
    with pytest.raises(FormatError, match=r"x\.gz: the gzip file is truncated"):
        read_text(path)
    path.write_bytes(whole[:5000] + b"\x00\x01\x02" + whole[5003:])
    with pytest.raises(FormatError, match=r"x\.gz: the gzip file is"):
        read_text(path)


def test_not_utf8_names_the_line(tmp_path: Path) -> None:
    path = tmp_path / "x.txt"
    path.write_bytes(b"one\ntwo\nth\xffree\n")
    with pytest.raises(FormatError, match=r"x\.txt:3: is not UTF-8"):
        read_text(path)


def test_output_appears_only_when_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    path.write_text("before")
    with pytest.raises(RuntimeError, match="stop"), atomic_writer(path) as stream:
        stream.write("half")
        raise RuntimeError("stop")
    assert path.read_text() == "before"
    assert [entry.name for entry in tmp_path.iterdir()] == ["out.txt"]
    with atomic_writer(path) as stream:
        stream.write("after\n")
    assert path.read_text() == "after\n"


def test_permissions_follow_the_umask_or_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "x"
    old = os.umask(0o027)
    try:
        with atomic_writer(path) as stream:
            stream.write("x")
        assert stat.S_IMODE(path.stat().st_mode) == 0o640
        path.chmod(0o600)
        with atomic_writer(path) as stream:
            stream.write("y")
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    finally:
        os.umask(old)


def test_a_symbolic_link_is_written_through(tmp_path: Path) -> None:
    (tmp_path / "far").mkdir()
    target, link = tmp_path / "far" / "file", tmp_path / "link.gz"
    target.write_text("old")
    target.chmod(0o640)
    link.symlink_to(target)
    for text in ("new", "newer"):
        with atomic_writer(link) as stream:
            stream.write(text)
        assert link.is_symlink() and target.stat().st_mode & 0o777 == 0o640
        # Compressed, as the name that was given says.
        assert gzip.decompress(target.read_bytes()) == text.encode()
    assert [path.name for path in (tmp_path / "far").iterdir()] == ["file"]
    # A link to nothing yet makes it; one that leads to itself is refused.
    target.unlink()
    with atomic_writer(link) as stream:
        stream.write("made")
    assert link.is_symlink() and read_text(target) == "made"
    circle = tmp_path / "circle"
    circle.symlink_to(circle)
    with pytest.raises(InputError, match="is a link that leads to itself"), atomic_writer(circle):
        pass


def test_a_folder_or_a_missing_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is a folder"), atomic_writer(tmp_path):
        pass
    with pytest.raises(InputError, match="cannot be written"), atomic_writer(tmp_path / "no" / "x"):
        pass


KILLED = """
import os, signal, sys
from rubric_measures.base.files import atomic_writer
with atomic_writer(sys.argv[1]) as stream:
    stream.write("half")
    stream.flush()
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_a_killed_writer_left_is_removed_by_the_next_one(tmp_path: Path) -> None:
    target, other = tmp_path / "out [1].txt", tmp_path / "other.txt"
    for path in (target, target, other):
        killed = subprocess.run([sys.executable, "-c", KILLED, str(path)], check=False)
        assert killed.returncode == -signal.SIGKILL
    # The second writer removed what the first one left.
    left = sorted(path.name for path in tmp_path.iterdir())
    assert len(left) == 2 and all(name.endswith(".part") for name in left)
    (tmp_path / ".out [1].txt.notes.part").write_text("the user's own")
    with atomic_writer(target) as stream:
        stream.write("whole")
    left.remove(next(name for name in left if name.startswith(".out [1].txt.")))
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*left, ".out [1].txt.notes.part", target.name])

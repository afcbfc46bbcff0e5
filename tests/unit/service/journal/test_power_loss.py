"""After a power cut at any moment every acknowledged event is there, and the store is sound; with NORMAL it is not."""

from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from shutil import rmtree
from typing import Literal

import apsw
import pytest

from coterie.errors import StoreError
from coterie.service.journal import Event, JournalBrokenError, SqliteJournal
from journal_cases import event, is_whole
from power_loss import Disk, watched, write_image

Synchronous = Literal["FULL", "NORMAL"]


@dataclass
class Life:
    """What a journal was given, and how much was done when it acknowledged it."""

    events: list[Event] = field(default_factory=list)
    acknowledged: list[tuple[int, int]] = field(default_factory=list)

    def promised(self, n_done: int) -> int:
        """Returns the number of the last event that was acknowledged by then."""
        return max((seq for done, seq in self.acknowledged if done <= n_done), default=0)


@dataclass
class Finds:
    """What the images of a disk showed."""

    n_images: int = 0
    n_lost: int = 0
    n_corrupt: int = 0
    n_in_doubt: int = 0


def live(disk: Disk, store: Path, random: Random, synchronous: Synchronous) -> Life:
    """Lets a journal take batches of all sizes, with checkpoints all the time, and closes it now and then.

    What it finds when it is opened is as good as acknowledged: whoever asks is told about it.
    """
    life = Life()
    for _ in range(random.randint(1, 4)):
        pages = random.choice([4, 12, 100])
        with closing(SqliteJournal(store, synchronous=synchronous, checkpoint_after=pages, vfs=disk.vfs)) as journal:
            life.acknowledged.append((len(disk.done), journal.last_seq))
            life.events = life.events or list(journal.read(1))
            for _ in range(random.randint(1, 25)):
                first, n_events = len(life.events) + 1, random.choice([1, 1, 2, 5, 20])
                size = random.choice([10, 300, 300, 9_000])
                batch = [event(seq, key=f"k{random.random()}", size=size) for seq in range(first, first + n_events)]
                life.events += batch
                journal.append(batch)
                life.acknowledged.append((len(disk.done), batch[-1].seq))
                if random.random() < 0.1:
                    assert journal.find(batch[0].key) == batch[:1]
    return life


def examine(life: Life, promised: int, store: Path, finds: Finds) -> None:
    """Opens what a power cut left, as production does, and counts what is wrong with it."""
    finds.n_images += 1
    try:
        with closing(SqliteJournal(store, synchronous="NORMAL")) as journal:
            found, checked = list(journal.read(1)), integrity(store)
            finds.n_lost += journal.last_seq < promised
            finds.n_in_doubt += journal.last_seq > promised
            is_sound = checked == "ok" and found == life.events[: len(found)] and all(map(is_whole, found))
            journal.append([event(journal.last_seq + 1, key="after")])
            finds.n_corrupt += not (is_sound and len(journal.find("after")) == 1)
    except (StoreError, JournalBrokenError, TypeError):  # the last for a row that has no body
        finds.n_corrupt += 1


def integrity(store: Path) -> str:
    with closing(apsw.Connection(str(store / "journal.sqlite"), flags=apsw.SQLITE_OPEN_READONLY)) as connection:
        return str(connection.pragma("integrity_check"))


def finds_of(
    n_images: int, folder: Path, *, seed: int, synchronous: Synchronous = "FULL", is_honest: bool = True
) -> Finds:
    """Returns what many images of several lives show."""
    random, finds = Random(seed), Finds()
    while finds.n_images < n_images:
        with watched(is_honest=is_honest) as disk:
            life = live(disk, folder / "lived", random, synchronous)
        for _ in range(min(10, n_images - finds.n_images)):
            n_done, store = random.randint(0, len(disk.done)), folder / "image"
            match random.choice(["once", "once", "twice", "killed before"] if is_honest else ["once"]):
                case "twice":
                    write_image(disk.image(n_done, random), store)
                    with watched(store) as second:
                        cut_later(second, store, random, synchronous, finds)
                case "killed before":
                    write_image(disk.image(n_done, random, kept=1.0), store)
                    with watched() as second:
                        second.go_on_from(disk, n_done, store)
                        cut_later(second, store, random, synchronous, finds)
                case _:
                    write_image(disk.image(n_done, random), store)
                    examine(life, life.promised(n_done), store, finds)
            rmtree(store)
        rmtree(folder / "lived")
    return finds


def cut_later(disk: Disk, store: Path, random: Random, synchronous: Synchronous, finds: Finds) -> None:
    """Lets a journal live on from what was left, and the power go, most often soon after it was opened."""
    before = len(disk.done)
    life = live(disk, store, random, synchronous)
    n_done = random.randint(before, min(before + random.choice([10, 30, 1_000]), len(disk.done)))
    image = disk.image(n_done, random)
    rmtree(store)
    write_image(image, store)
    examine(life, life.promised(n_done), store, finds)


@pytest.mark.parametrize("n_images", [30, pytest.param(300, marks=pytest.mark.slow)])
def test_nothing_acknowledged_is_lost_and_nothing_is_corrupt(n_images: int, tmp_path: Path) -> None:
    finds = finds_of(n_images, tmp_path, seed=n_images)
    assert (finds.n_images, finds.n_lost, finds.n_corrupt) == (n_images, 0, 0)
    assert finds.n_in_doubt < n_images / 2  # it is what was promised that is compared, not all that there is


@pytest.mark.parametrize("n_images", [30, pytest.param(300, marks=pytest.mark.slow)])
def test_the_control_without_full_syncs_loses_some_and_the_test_sees_it(n_images: int, tmp_path: Path) -> None:
    finds = finds_of(n_images, tmp_path, seed=n_images, synchronous="NORMAL")
    assert finds.n_lost > n_images / 10
    assert finds.n_corrupt == 0


def test_the_control_on_a_disk_that_lies_is_corrupt_and_the_test_sees_it(tmp_path: Path) -> None:
    assert finds_of(30, tmp_path, seed=3, is_honest=False).n_corrupt > 3


def test_what_a_killed_process_left_is_on_the_disk_once_it_was_found(tmp_path: Path) -> None:
    with watched() as disk, closing(SqliteJournal(tmp_path / "store", vfs=disk.vfs)) as journal:
        journal.append([event(1)])
        killed_at = max(place for place, each in enumerate(disk.done) if each.what == "sync")  # before the last sync
        write_image(disk.image(killed_at, Random(0), kept=1.0), tmp_path / "killed")
        with watched() as second:
            second.go_on_from(disk, killed_at, tmp_path / "killed")
            with closing(SqliteJournal(tmp_path / "killed", vfs=second.vfs)) as found:
                assert found.last_seq == 1
                write_image(second.image(len(second.done), Random(0), kept=0.0), tmp_path / "cut")
    with closing(SqliteJournal(tmp_path / "cut")) as left:
        assert list(left.read(1)) == [event(1)]

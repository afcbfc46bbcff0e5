"""Data sets that others publish: tiny ones in their formats, and where the real ones lie, if they do."""

import gzip
import json
import os
from pathlib import Path

import pytest

BESIDE = Path(__file__).parents[2] / "shared" / "data"


def real(name: str) -> Path:
    """Returns the folder of a real data set, or skips the test: it is not ours to ship."""
    folder = Path(os.environ.get("COTERIE_DATA", BESIDE)) / name
    if not folder.is_dir():
        pytest.skip(f"the data set {name} is not here; COTERIE_DATA names the folder of data sets")
    return folder


def tiny_lastfm(folder: Path) -> Path:
    """Writes three users and five artists; artist 50 has no tags, artist 99 is not in artists.dat."""
    files = {
        "artists.dat": ["id\tname\turl\tpictureURL", *(f"{a}\tName {a}\tu\tp" for a in (10, 20, 30, 40, 50))],
        "tags.dat": ["tagID\ttagValue", "1\tmetal", '2\t"caf\xe9', "3\tpop", "4\tindie"],
        "user_friends.dat": ["userID\tfriendID", "2\t3", "3\t2", "3\t7", "7\t3"],
        "user_artists.dat": ["userID\tartistID\tweight", "2\t10\t5", "2\t50\t1", "3\t20\t9", "7\t30\t2", "7\t40\t3"],
        "user_taggedartists.dat": [
            "userID\tartistID\ttagID\tday\tmonth\tyear",
            *("2\t10\t1", "3\t10\t1", "2\t10\t3", "3\t20\t2", "7\t30\t3", "3\t30\t4", "7\t40\t4", "2\t99\t1"),
        ],
    }
    dated = files["user_taggedartists.dat"]
    dated[1:] = [f"{line}\t1\t4\t2009" for line in dated[1:]]
    folder.mkdir(exist_ok=True)
    for name, lines in files.items():
        encoding = "latin-1" if name == "tags.dat" else "utf-8"
        (folder / name).write_bytes("\r\n".join([*lines, ""]).encode(encoding))
    return folder


def tiny_deezer(folder: Path) -> Path:
    """Writes three users in Hungary."""
    folder.mkdir(exist_ok=True)
    (folder / "HU_edges.csv").write_text("node_1,node_2\n0,1\n1,10\n")
    (folder / "HU_genres.json").write_text(json.dumps({"0": ["Pop"], "10": ["Rock", "Norteño"], "1": ["Rock", "Pop"]}))
    return folder


def tiny_filmtrust(folder: Path) -> Path:
    """Writes 20 raters of 12 items each; user 99 only trusts; the last rating of user 1 and item 1 is another one."""
    folder.mkdir(exist_ok=True)
    rows = [f"{user} {item} {0.5 * (1 + (user * item + item) % 8):g}" for user in range(1, 21) for item in range(1, 13)]
    (folder / "ratings.txt").write_text("\n".join([*rows, "1 1 4", ""]))
    (folder / "trust.txt").write_text("1 2 1\n2 1 0.5\n2 3 1\n99 3 1\n")
    return folder


def tiny_open_bandit(folder: Path) -> Path:
    """Writes four choices among three items, of a uniform logger, compressed and flat."""
    folder.mkdir(exist_ok=True)
    names = (
        "timestamp,item_id,position,click,propensity_score,user_feature_0,user_feature_1,user_feature_2,user_feature_3"
    )
    rows = [
        f",{names},user-item_affinity_0,user-item_affinity_1",
        "0,2019-11-24 00:00:17.5+00:00,2,1,0,0.25,a,b,c,d,0.0,1.0",
        "1,2019-11-24 00:00:18+00:00,0,3,1,0.5,a,b,c,e,0.0,1.0",
        "2,2019-11-24 00:00:19+00:00,1,1,1,0.25,a,b,c,d,0.0,1.0",
        "3,2019-11-24 00:00:20+00:00,2,2,0,0.25,a,b,c,d,0.0,1.0",
    ]
    context = [
        ",item_id,item_feature_0,item_feature_1,item_feature_2,item_feature_3",
        *("0,0,-0.5,x,y,z", "1,1,0.5,w,y,z", "2,2,1.5,x,y,v"),
    ]
    for name, lines in (("all", rows), ("item_context", context)):
        (folder / f"random_all_{name}.csv.gz").write_bytes(gzip.compress("\n".join([*lines, ""]).encode()))
    return folder

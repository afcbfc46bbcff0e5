"""Runs the benchmarks of the service, and writes their part of docs/benchmarks.md: python -m benchmarks.service."""

from benchmarks.__main__ import BEGIN, END, HEAD, PAGE, service_part
from benchmarks.service import journal, speed

TITLE = "## Service: durable decisions over HTTP"
NOTE = (
    "Written by `make bench-service`. One service of each kind is asked in turn over loopback, 7 times, with 100 users "
    "and 10 arms; medians of ratios. The sender has the other core. `random` has next to no model, so its rows "
    "are those of the service itself."
)


def main() -> None:
    """Measures, prints, and writes."""
    lines = []
    for rows in (journal.rows(), speed.rows("auto-ucb"), speed.rows("random")):
        for row in rows:
            lines.append(row.as_markdown())
            print(lines[-1], flush=True)
    part = "\n".join([BEGIN, TITLE, "", NOTE, "", HEAD, *lines, END])
    page = PAGE.read_text(encoding="utf-8")
    old = service_part(page)
    PAGE.write_text(page.replace(old, part) if old else f"{page.rstrip()}\n\n{part}\n", encoding="utf-8")


if __name__ == "__main__":
    main()

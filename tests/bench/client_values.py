"""What values of clients change in logs: ``python -m tests.bench.client_values CORPUS... [--cases N] [--verdicts N]``.

Each case writes a line that prints a client's value at a random place of a server log, in text and in JSON. All lines
that print such values take turns. No case adds a fact, and one that costs a fact leaves a doubtful record. In JSON it
changes nothing. ``--verdicts`` judges whole corpora with values that forge lines about their lost records, without
Spark. Half of these values are balanced: their records end and begin as those of brokers. No violated cluster becomes
clean, and no cluster gets a violation. Prints figures, and ends with 1 otherwise.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import cycle
from pathlib import Path
from random import Random
from typing import NamedTuple

from tests.bench.figures import markdown
from tests.generators.client_values import ALL_CARRIERS, balanced_value, make_case, value_of, write_value
from tests.log_tables import judge, read_again, read_logs

HEADS = ("corpus", "cases", "facts added", "lost without doubt", "doubtful", "changed in JSON")
VERDICTS = ("corpus", "verdict", "cases", "became clean", "false violations", "holes seen", "violated")


class Verdict(NamedTuple):
    """A verdict after values of clients were written into logs."""

    was: str
    found: str
    is_seen: bool
    has_false_violations: bool


def main(arguments: Sequence[str]) -> int:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("corpora", nargs="+", type=Path)
    parser.add_argument("--cases", type=int, default=60, help="cases of each corpus, in text and in JSON")
    parser.add_argument("--verdicts", type=int, default=0, help="verdicts of each corpus")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args(arguments)
    shuffled = Random(given.seed).sample(ALL_CARRIERS, len(ALL_CARRIERS))
    carriers = cycle(shuffled)
    rows, verdicts = [], []
    is_good = True
    for corpus in given.corpora:
        logs = sorted(corpus.glob("broker-*/logs/server.log*"))
        counts: Counter[str] = Counter()
        for number in range(given.cases):
            case = make_case(logs[number % len(logs)], Random(f"{given.seed} {number}"), next(carriers))
            is_lost = not case.costs_no_fact and not case.is_doubted
            named = {HEADS[2]: not case.adds_no_fact, HEADS[3]: is_lost, HEADS[4]: case.is_doubted}
            named[HEADS[5]] = not case.is_text_in_json
            counts.update(["cases", *(name for name, is_so in named.items() if is_so)])
            if not case.adds_no_fact or is_lost or not case.is_text_in_json:
                is_good = False
                print(f"{corpus.name} {number}: {named} {case.carrier} {case.value!r}", flush=True)
        rows.append((corpus.name, *(counts[head] for head in HEADS[1:])))
        judged = list(verdicts_of(corpus, given.verdicts, given.seed)) if given.verdicts else []
        if judged:
            clean = sum(one.was == "violated" and one.found == "clean" for one in judged)
            false, seen, violated = (
                sum(one.has_false_violations for one in judged),
                sum(one.is_seen for one in judged),
                sum(one.found == "violated" for one in judged),
            )
            is_good &= not clean and not false
            verdicts.append((corpus.name, judged[0].was, len(judged), clean, false, seen, violated))
    total = ("all", *(sum(row[place] for row in rows) for place in range(1, len(HEADS))))
    print("\n".join(markdown(HEADS, [[str(cell) for cell in row] for row in [*rows, total]])))
    if verdicts:
        print("\n".join(markdown(VERDICTS, [[str(cell) for cell in row] for row in verdicts])))
    return 0 if is_good else 1


def verdicts_of(corpus: Path, count: int, seed: int) -> Iterator[Verdict]:
    """Yield verdicts with values of clients in the server logs of one or several brokers."""
    logs = read_logs(corpus)
    whole = judge(logs)
    random = Random(f"{seed} {corpus.name}")
    topics = sorted((topic, partition) for _, topic, partition in whole.violations) or [("orders", 0)]
    servers = [log for log in logs if log.kind == "server" and b"\n[20" in log.content[: 1 << 16]]
    for number in range(count):
        topic, partition = random.choice(topics)
        hit = random.sample(servers, random.randint(1, len(servers)))
        left = []
        for log in logs:
            if log in hit:
                carrier = random.choice(ALL_CARRIERS)
                value = balanced_value(random, carrier) if number % 2 else value_of(random)
                content = write_value(log.content, carrier, value, random, f"{topic}-{partition}")
                with tempfile.TemporaryDirectory() as folder:
                    path = Path(folder) / Path(log.path).name.removesuffix(".gz")
                    path.write_bytes(content)
                    left.append(read_again(log, path) or log)
            else:
                left.append(log)
        found = judge(left)
        is_seen = bool(set(found.holes) - set(whole.holes))
        if found.verdict == "clean" != whole.verdict or not found.violations <= whole.violations:
            print(f"{corpus.name}: {whole.verdict} became {found.verdict}, {sorted(found.violations)}", flush=True)
        yield Verdict(whole.verdict, found.verdict, is_seen, not found.violations <= whole.violations)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

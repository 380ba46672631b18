"""`docs/safety_properties.md`, rendered from the table of safety properties."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pipelines.rules.safety_properties import EVIDENCE, SAFETY_PROPERTIES, SPECIFICATIONS, Reach, SafetyProperty

_SIGN: dict[Reach, str] = {"checkable": "yes", "partly": "partly", "no": "no"}
_HEAD = (
    "# Safety properties of Kafka's TLA+ specifications",
    "",
    "What public specifications of Kafka prove of the protocol, and how far broker logs can show that a cluster kept "
    "it. T0 to T3 are the tiers of evidence; *data* is what data directories add to any of them. *yes*: a violation "
    "that the evidence covers is found; *partly*: some violations are; *no*: none. A property without a rule is not "
    "checked.",
    "",
    "Rendered from `pipelines/rules/safety_properties.py`; change it there.",
)


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    lines = [header, ["---"] * len(header), *rows]
    return ["| " + " | ".join(cells) + " |" for cells in lines]


def _row(safety: SafetyProperty) -> list[str]:
    rules = ", ".join(f"`{rule_id}`" for rule_id in safety.rule_ids) or "none"
    return [f"`{safety.name}`", safety.meaning, *(_SIGN[reach] for reach in safety.reach), rules, safety.note]


def safety_properties_markdown() -> str:
    """The whole document."""
    lines = [*_HEAD, "", "## Sources", ""]
    lines += _table(
        ("repository", "commit", "what it models"),
        ([f"[{s.repository}](https://github.com/{s.repository})", s.commit, s.about] for s in SPECIFICATIONS.values()),
    )
    modules = dict.fromkeys((safety.specification, safety.module) for safety in SAFETY_PROPERTIES)
    for specification, module in modules:
        repository = SPECIFICATIONS[specification].repository
        rows = [
            _row(safety)
            for safety in SAFETY_PROPERTIES
            if (safety.specification, safety.module) == (specification, module)
        ]
        lines += ["", f"## {repository}: {module}.tla", ""]
        lines += _table(("property", "meaning", *EVIDENCE, "rules", "note"), rows)
    found = [safety.verdict for safety in SAFETY_PROPERTIES]
    counts = (
        ", ".join(f"{found.count(reach)} {reach}" for reach in ("checkable", "partly")) + f", {found.count('no')} not"
    )
    lines += ["", "## In numbers", "", f"{len(found)} properties, by the furthest that any evidence goes: {counts}."]
    return "\n".join(lines) + "\n"

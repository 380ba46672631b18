"""The words of rules (``texts.toml``): guarantee and proof, the meaning of a finding, legal look-alikes. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from typing import Final, Literal

import msgspec


class LegalWay(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An action of Kafka, by itself or on request, that looks like a fault."""

    what: str  #: what Kafka does
    source: str  #: class and method, KIP, JIRA or documentation


class RuleTexts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The words of one rule."""

    guarantee: str  #: what Kafka promises, in one sentence
    source: str  #: where it promises that: KIP, documentation, TLA+ property, class and method
    versions: str  #: Kafka versions that it holds for
    tier: Literal["T0", "T1", "T2", "T3"]  #: evidence that it needs at least
    needs: str  #: in words, what has to be in the logs
    proof: str  #: why a case cannot be an effect of missing lines
    shows: tuple[tuple[str, str], ...]  #: what its cases are, by severity
    data: str  #: what a finding means for records and clients
    act: str  #: what to do now: the first that a person on call asks
    #: by legal way that makes what it looks at, why it is silent; a way not listed does not touch it
    silent: dict[str, str]
    broken: str = ""  #: headline of a violation; of a rule of loss, what is lost. Empty if the rule has no violations
    #: False if each finding of a rule of loss is a batch that was never written: no replica has its records
    is_on_replicas: bool = True


class _Texts(msgspec.Struct, forbid_unknown_fields=True):
    ways: dict[str, LegalWay]
    rules: dict[str, RuleTexts]


_TEXTS: Final = msgspec.toml.decode(files(__package__).joinpath("texts.toml").read_bytes(), type=_Texts)
#: By short name.
WAYS: Final[Mapping[str, LegalWay]] = _TEXTS.ways
#: By rule id.
TEXTS: Final[Mapping[str, RuleTexts]] = _TEXTS.rules

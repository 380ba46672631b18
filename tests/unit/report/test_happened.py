"""What happened as chains: a cause, and what it brought about."""

from pipelines.report.happened import chains
from tests.unit.report import sample


def test_a_cause_without_advice_has_that_of_its_worst_effect() -> None:
    cause = sample.incident("broker_stopped", advice="")
    effects = [
        sample.incident("under_min_isr", caused_by=cause.incident_id, advice="Bring broker 3 back."),
        sample.incident("isr_shrank", caused_by=cause.incident_id, advice="Wait."),
    ]
    (chain,) = chains([cause, *effects])
    assert chain.advice == "Bring broker 3 back."
    (with_own,) = chains([cause.model_copy(update={"advice": "Start it."}), *effects])
    assert with_own.advice == "Start it."
    (alone,) = chains([cause])
    assert alone.advice == ""

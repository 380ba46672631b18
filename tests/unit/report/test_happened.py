"""What happened as chains: a cause, and what it brought about."""

from highwater.pipelines.report.happened import chains
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


def test_the_times_of_a_chain_are_those_of_its_worst_effect() -> None:
    outage = {"class_": "unavailable", "start_time": "2026-11-20T15:28:30Z", "end_time": "2026-11-20T15:28:40Z"}
    absence = {"class_": "remark", "start_time": "2026-11-20T15:28:37Z", "end_time": None}
    cause = sample.incident("broker_died").model_copy(update=absence | {"start_time": "2026-11-20T15:28:23Z"})
    worst = sample.incident("partitions_without_leader", caused_by=cause.incident_id).model_copy(update=outage)
    later = sample.incident("isr_shrunk", caused_by=cause.incident_id).model_copy(update=absence)
    (chain,) = chains([cause, worst, later])
    assert (chain.start_time, chain.end_time) == (outage["start_time"], outage["end_time"])

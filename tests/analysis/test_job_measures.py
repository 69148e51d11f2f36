"""A job of many ranks as one run that is compared."""

from __future__ import annotations

from math import isinf, nan
from typing import Any

from builders import MB
from gpu_tracker.analysis.compare import compare
from gpu_tracker.analysis.job_measures import add_inner, doubt_rest, join_ranks, list_missing
from gpu_tracker.analysis.measures import RunFigures, measure
from gpu_tracker.core.model import Event, Header, Identity, MetricRow, RecordingData
from recorded import join, lost_run, on_gpu, part, rank


def header(pid: int = 1, **identity: Any) -> Header:
    """Of a recording with that identity."""
    return rank(pid=pid).header._replace(identity=Identity(**identity))


def by_name(figures: RunFigures) -> dict[str, float | None]:
    """Values by region or metric and figure."""
    return {
        "/".join((*subject.region, subject.metric or subject.figure.name)): value
        for subject, value in figures.values.items()
    }


def join_all(*ranks: RecordingData) -> RunFigures:
    """As one run."""
    return join_ranks(join(*ranks), [measure(one) for one in ranks])


def test_a_job_is_as_long_as_its_slowest_rank() -> None:
    """And used what all of them used; its loss is that of the first."""
    ranks = [
        rank(
            ram=400 * number,
            seconds=10.0 * number,
            pid=number,
            host=f"n{number}",
            regions=(part(number, *[1.0 * number] * number, cpu_seconds=2.0),),
            metrics=(MetricRow(1.0, {"loss": 1.0 * number}),),
        )
        for number in (1, 2)
    ]
    joined = join_all(*ranks)
    values = by_name(joined)

    assert (values["time"], values["cpu_time"]) == (20.0, 30.0)
    assert (values["step/time"], values["step/calls"], values["step/cpu_time"]) == (4.0, 3, 4.0)
    assert values["loss"] == 1.0
    assert (joined.host, joined.failure) == ("n1, n2", "")
    (peak_ram, loss) = joined.floors
    assert (values["peak_ram"], joined.floors[peak_ram]) == (1200 * MB, 800 * MB)
    assert (joined.floors[loss], dict(joined.ceilings)) == (1.0, {loss: 2.0})
    assert joined.estimates == ("peak_ram",)


def test_a_region_of_a_job_may_have_used_as_much_as_in_any_rank() -> None:
    """Its memory was only sampled, in ranks or in what is part of a run."""
    ranks = [
        rank(ram=400 * number, pid=number, regions=(part(number, 1.0, peak_ram_bytes=100 * number * MB),))
        for number in (1, 2)
    ]
    (peak,) = (
        subject
        for subject in measure(ranks[0]).values
        if subject.region and subject.figure.name == "peak_ram"
    )
    joined = join_all(*ranks)
    outer = add_inner(measure(rank(ram=400, pid=3)), [measure(one) for one in ranks], [])

    for whole in (joined, outer):
        assert (whole.values[peak], whole.ceilings[peak]) == (200 * MB, 800 * MB)


def test_what_one_rank_does_not_know_is_not_known_of_the_job() -> None:
    """Nor is there an upper bound of memory that was not measured."""
    joined = join_all(rank(pid=1, regions=(part(1, 1.0),)), lost_run(regions=(part(1, peak_ram_bytes=5),)))

    assert by_name(joined)["step/time"] is None
    assert list(joined.ceilings.values()) == [float("inf")] * 3
    assert (joined.at_least, joined.failure) == (("cpu_time", "mean_cores", "peak_ram"), "sampler lost")


def test_a_job_has_no_upper_bound_of_what_a_rank_had_done_elsewhere() -> None:
    """Its other ranks do not change that."""
    launcher = rank(pid=1)
    launcher = launcher._replace(header=launcher.header._replace(command=("docker", "run", "image")))
    joined = join_all(launcher, rank(pid=2, host="b"))
    unbounded = {subject.figure.name for subject, most in joined.ceilings.items() if isinf(most)}

    assert unbounded == {"cpu_time", "mean_cores", "peak_ram"}
    assert joined.elsewhere.startswith("docker has its work done elsewhere")


def test_estimated_gpu_memory_of_ranks_is_bounded() -> None:
    """By that of any one of them, and by what all processes held on their device, which each of them sees."""
    estimated = on_gpu(1, job=None)
    estimated = estimated._replace(events=(*estimated.events, Event(1.0, "unattributed", "?")))
    listed = on_gpu(2)
    shared, elsewhere = (
        join_all(estimated, other) for other in (listed, listed._replace(header=on_gpu(2, "b").header))
    )

    for joined, most in ((shared, 3000 * MB), (elsewhere, 5000 * MB)):
        (least,) = (
            bound for subject, bound in joined.floors.items() if subject.figure.name == "peak_gpu_ram"
        )
        (bound,) = (
            most for subject, most in joined.ceilings.items() if subject.figure.name == "peak_gpu_ram"
        )
        assert (least, bound) == (2000 * MB, most)


def test_partly_known_utilization_of_ranks_is_bounded_and_marked() -> None:
    """No rank was busier than the job may have been, nor idler; energy of regions is as uncertain as in any rank."""
    whole = on_gpu(1)
    (counters,) = whole.totals.gpu_counters
    divided = part(1, 2.0, energy_joules=5.0, energy_least_joules=3.0, energy_most_joules=9.0)
    partial = whole._replace(
        regions=(divided,),
        totals=whole.totals._replace(
            at_seconds=10.0,
            gpu_counters=(counters._replace(utilization_percent_seconds=320.0, utilization_seconds=8.0),),
        ),
    )
    job = join_all(partial, partial._replace(header=partial.header._replace(pid=2)))
    (percent,) = (one for one in job.values if one.figure.name == "gpu_utilization" and not one.region)
    (energy,) = (one for one in job.values if one.figure.name == "energy" and one.region)
    compared = compare([("job", [job])])

    assert (job.values[percent], job.floors[percent], job.ceilings[percent]) == (40.0, 32.0, 52.0)
    assert (job.floors[energy], job.ceilings[energy]) == (3.0, 9.0)
    assert "The GPU utilization of job is without up to 2 s of the time of a run." in compared.notes


def test_memory_of_a_job_on_one_tree_is_exact() -> None:
    """Then it has no bounds."""
    joined = join_all(rank(ram=400, pid=1))

    assert (by_name(joined)["peak_ram"], dict(joined.ceilings)) == (400 * MB, {})


def test_a_metric_that_is_no_number_in_any_rank_is_none_of_the_job() -> None:
    """Whichever rank logs first; where all agree there is nothing to tell."""
    logged = [
        join_all(
            *(
                rank(pid=number, metrics=(MetricRow(1.0, {"loss": value}),))
                for number, value in enumerate(values)
            )
        )
        for values in ((0.1, nan), (nan, 0.1), (0.1, 0.1))
    ]

    assert [str(by_name(one)["loss"]) for one in logged] == ["nan", "nan", "0.1"]
    assert not any(subject.metric for one in logged for subject in (*one.floors, *one.ceilings))


def test_ranks_of_which_there_is_no_recording_are_missing_in_the_figures() -> None:
    """Even if only one is left."""
    identity = Identity(job="7", rank=0, ranks=3)
    one = rank(pid=1)
    joined = join_all(one._replace(header=one.header._replace(identity=identity)))

    assert joined.incomplete == "no recording of rank 1, 2"
    assert join_all(rank(pid=1)).incomplete == ""


def test_a_run_has_what_those_that_are_part_of_it_tell() -> None:
    """That one failed or is missing, its regions and metrics; its own figures include theirs."""
    whole = measure(rank(ram=900, metrics=(MetricRow(1.0, {"loss": 1.0}),)))
    inner = [
        measure(
            rank(pid=pid, regions=(part(pid, 2.0),), metrics=(MetricRow(1.0, {"loss": loss, "norm": 2.0}),))
        )
        for pid, loss in ((2, 9.0), (3, 3.0))
    ]
    failed = inner[1]._replace(failure="exit code 4", lacks_metrics=True)
    added = add_inner(whole, [inner[0], failed], ["no recording of rank 2"])
    values = by_name(added)

    assert (values["peak_ram"], values["time"]) == (900 * MB, 10.0)
    assert (values["loss"], values["norm"], values["step/time"], values["step/calls"]) == (1.0, 2.0, 2.0, 2)
    (loss,) = added.floors
    assert (added.floors[loss], added.ceilings[loss]) == (1.0, 9.0)
    assert (added.failure, added.incomplete) == (
        "a recorded part of it: exit code 4",
        "no recording of rank 2",
    )
    assert (added.lacks_regions, added.lacks_metrics) == (False, True)


def test_a_part_without_an_exit_code_is_no_failure() -> None:
    """That of the whole is known; what the whole says of itself comes first."""
    whole, inner = measure(rank()), measure(rank(pid=2))
    unknown = inner._replace(failure="exit code not known")

    assert add_inner(whole, [unknown], []).failure == ""
    assert add_inner(whole._replace(failure="exit code 1"), [inner], []).failure == "exit code 1"


def test_a_run_without_some_of_its_time_may_have_used_more() -> None:
    """Of everything, as far as it is known; its regions are not touched."""
    whole = measure(rank(pid=1)._replace(regions=(part(1, 2.0),)))
    doubted = doubt_rest(whole)
    names = {
        subject.figure.name
        for subject, most in doubted.ceilings.items()
        if isinf(most) and not subject.region
    }

    assert doubted.values == whole.values
    assert names == {"time", "cpu_time", "mean_cores", "peak_ram", "peak_gpu_ram", "energy"}
    assert set(doubted.at_least) == names
    assert not any(subject.region for subject in doubted.ceilings.keys() - whole.ceilings.keys())


def test_missing_ranks_are_those_of_each_job() -> None:
    """What is no rank of anything lacks none."""
    ranks = [
        rank()._replace(header=header(job=job, rank=0, ranks=ranks))
        for job, ranks in (("7", 2), ("8", 1), ("9", None))
    ]
    named = [(f"{number}", one) for number, one in enumerate([*ranks, rank()])]

    assert list_missing(named) == ["no recording of rank 1"]


def test_a_run_used_at_least_what_its_parts_did() -> None:
    """Their CPU time adds up; of their memory one of them may have held all that was shared."""
    small, parts = measure(rank(ram=100, seconds=5.0)), [measure(rank(ram=300, pid=pid)) for pid in (1, 2)]
    least, alone = by_name(doubt_rest(small, parts)), by_name(doubt_rest(small))

    assert (least["cpu_time"], least["peak_ram"], least["time"]) == (20.0, 300 * MB, 10.0)
    assert (alone["cpu_time"], alone["peak_ram"], alone["peak_gpu_ram"]) == (5.0, 100 * MB, None)

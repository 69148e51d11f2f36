"""What can be measured, judged from an observation."""

from __future__ import annotations

from typing import Any

import pytest

from gpu_tracker.analysis.checks import (
    ENERGY_GROUP,
    FAILED,
    FINE,
    NOTHING,
    WARNING,
    Check,
    Diagnosis,
    Signs,
    check_gpus,
    fail_gpus,
)
from gpu_tracker.core.model import GpuReadings
from gpu_tracker.core.observation import (
    ABSENT,
    BROKEN,
    REQUESTED,
    SLOW,
    UNSUPPORTED,
    Missing,
    Reason,
    VendorState,
)
from gpu_tracker.sources.gpu.guard import DENIED, LOST, TROUBLE
from observed import gpu, observation, process, reading, vendor


def check(*vendors: VendorState, **signs: Signs) -> tuple[Check, ...]:
    """The checks of an observation."""
    return check_gpus(observation(*vendors), signs)


def states(checks: tuple[Check, ...], *expected: str) -> list[str]:
    """The states of these checks."""
    return [check.what for check in checks if check.state in expected]


def test_a_machine_that_reports_everything_is_fine() -> None:
    """Every figure of every device has its line."""
    checks = check(vendor(reading(0), reading(1), gpus=(gpu(0, driver="550.1"), gpu(1, driver="550.1"))))

    assert {check.state for check in checks} == {FINE}
    assert checks[0].text == "2 devices read through nvml, driver 550.1"
    assert len(checks) == 1 + 2 * 10
    assert Diagnosis(checks).is_complete


def test_processors_without_meters_are_a_gap() -> None:
    """The processors are there, and their energy is not measured: that is not everything."""
    checks = check(vendor(reading(0), gpus=(gpu(0),)))
    without = Diagnosis((*checks, Check(ENERGY_GROUP, "processors", NOTHING, "no meter")))

    assert (without.is_fine, without.is_complete) == (True, False)


def test_a_split_device_is_checked_by_its_instances() -> None:
    """It is not one more; one line says where its figures are."""
    split = (gpu(0)._replace(is_split=True), gpu(1)._replace(ordinal=0, instance=0))
    checks = check(vendor(reading(0), reading(1), gpus=split))

    assert checks[0].text == "1 device read through nvml"
    assert checks[1].text == "split (MIG): it is measured as its instances"
    assert len(checks) == 1 + 1 + 10


def test_having_no_gpu_is_fine() -> None:
    """One sentence says so."""
    checks = check(
        VendorState("nvidia", missing=(Missing("nvml", ABSENT, "No library."),)), VendorState("amd")
    )

    assert {check.state for check in checks} == {NOTHING}
    assert checks[-1].text == "No GPU found; everything else is measured."


@pytest.mark.parametrize("kind", [BROKEN, SLOW])
def test_a_driver_that_does_not_answer_is_a_fault(kind: str) -> None:
    """Its own message is the reason."""
    checks = check(
        VendorState("nvidia", missing=(Missing("nvml", kind, "It fails."), Missing("smi", ABSENT, "No smi.")))
    )

    assert checks == (Check("GPUs", "NVIDIA", FAILED, "It fails."),)


def test_hardware_without_a_driver_is_judged_by_whether_a_job_could_use_it() -> None:
    """Device files make it a failure; a device that is only on the bus, a warning."""
    absent = VendorState("nvidia", missing=(Missing("nvml", ABSENT, "No library."),))

    (usable,) = check(absent, nvidia=Signs(("0000:01:00.0",), ("/dev/nvidia0",)))
    (unusable,) = check(absent, nvidia=Signs(("0000:01:00.0",)))
    assert usable.state == FAILED
    assert usable.text.startswith(
        "/dev/nvidia0 exists, but: No library. In a container, start it with `--gpus all`"
    )
    assert unusable.state == WARNING
    assert not Diagnosis((unusable,)).is_complete
    assert "0000:01:00.0" in unusable.text


def test_devices_that_are_asked_for_are_a_warning_with_the_cure() -> None:
    """Without evidence that they exist it is no failure: images ask for devices whether there are any or not."""
    asked = VendorState("nvidia", missing=(Missing("nvml", REQUESTED, "Do this."),))

    assert check(asked) == (Check("GPUs", "NVIDIA", WARNING, "Do this."),)
    (usable,) = check(asked, nvidia=Signs((), ("/dev/nvidia0",)))
    assert (usable.state, usable.text) == (FAILED, "/dev/nvidia0 exists, but: Do this.")


def test_a_process_that_is_listed_but_not_found_is_a_warning() -> None:
    """It has ended, or belongs to another namespace: which is not known."""
    checks = check(vendor(reading(0), processes=(process(0, 4242, 5), process(0, 7, 5))))

    assert [(one.state, one.text) for one in checks if one.what == "processes"] == [
        (WARNING, "1 of 2 listed cannot be found here: ended, or of another PID namespace.")
    ]


def test_the_second_best_source_is_fine_but_named() -> None:
    """The reason why the best one does not answer is a warning."""
    checks = check(
        vendor(
            reading(),
            source="nvidia_smi",
            missing=(Missing("nvml", BROKEN, "No permission."), Missing("other", ABSENT, "None.")),
        )
    )

    assert states(checks, WARNING, FAILED) == ["nvml", "other"]
    assert checks[1].text == "No permission. nvidia_smi is used instead."
    assert "NVIDIA_DRIVER_CAPABILITIES" in checks[2].text
    assert (Diagnosis(checks).is_fine, Diagnosis(checks).is_complete) == (True, False)


def test_a_figure_that_no_device_has_is_one_of_each_device() -> None:
    """Not a fault of the vendor."""
    reasons = (
        Reason("", "energy_joules", "No energy.", UNSUPPORTED),
        Reason("", "utilization_of_processes", "No shares.", UNSUPPORTED),
    )
    checks = check(vendor(reading(energy_joules=None, measures_processes=False), reasons=reasons))

    assert [(one.what, one.text) for one in checks if one.state == NOTHING and one.group != "GPUs"] == [
        ("energy", "No energy."),
        ("their utilization", "No shares."),
    ]
    assert (Diagnosis(checks).is_fine, Diagnosis(checks).is_complete) == (True, False)


@pytest.mark.parametrize(
    ("reasons", "state"),
    [((), NOTHING), ((Reason("GPU-0", "utilization_of_processes", "Denied.", DENIED),), FAILED)],
)
def test_utilization_by_process_may_be_denied(reasons: tuple[Reason, ...], state: str) -> None:
    """Without a reason the device has none."""
    checks = check(vendor(reading(measures_processes=False), reasons=reasons))

    assert [one.state for one in checks if one.what == "their utilization"] == [state]


def test_utilization_of_processes_that_is_not_reported_is_not_fine() -> None:
    """As with ROCm, whose queues bypass the engines' clocks."""
    silent = process()._replace(utilization_percent=None)
    checks = check(vendor(reading(), processes=(silent,)))

    assert [(one.state, one.text) for one in checks if one.what == "their utilization"] == [
        (NOTHING, "Not reported of 1 of 1.")
    ]


def test_an_instance_lacks_what_is_reported_for_whole_devices() -> None:
    """That is no fault; without its memory it would be one."""
    instance = gpu(0)._replace(parent_uuid="GPU-9")
    checks = check(vendor(reading(utilization_percent=None, used_bytes=None), gpus=(instance,)))

    assert states(checks, NOTHING) == ["utilization"]
    assert states(checks, FAILED) == ["memory used"]


def test_a_driver_without_devices_is_nothing() -> None:
    """A node without cards has the library too."""
    checks = check(vendor())

    assert {check.state for check in checks} == {NOTHING}


@pytest.mark.parametrize(
    ("reason", "state"),
    [
        (Reason("GPU-0", "utilization_percent", "Denied.", DENIED), FAILED),
        (Reason("GPU-0", "utilization_percent", "None.", UNSUPPORTED), NOTHING),
        (Reason("GPU-0", "utilization_percent", "Somehow."), FAILED),
        (None, FAILED),
    ],
)
def test_a_missing_figure_is_judged_by_its_reason(reason: Reason | None, state: str) -> None:
    """Unsupported is fine; without a kind, only essential figures fail."""
    reasons = () if reason is None else (reason,)
    checks = check(vendor(reading(utilization_percent=None), reasons=reasons))

    assert [check.state for check in checks if check.what == "utilization"] == [state]


@pytest.mark.parametrize("reasons", [(), (Reason("GPU-0", "power_watts", "Somehow."),)])
def test_a_missing_figure_that_is_not_essential_is_fine(reasons: tuple[Reason, ...]) -> None:
    """Such as power."""
    checks = check(vendor(reading(power_watts=None), reasons=reasons))

    assert states(checks, FAILED) == []
    assert states(checks, NOTHING) == ["power"]


def test_throttling_that_is_denied_is_said() -> None:
    """It would look as if there were none."""
    reasons = (Reason("GPU-0", "limits", "It needs other rights.", "denied"),)
    checks = check(vendor(reading(), reasons=reasons))

    assert [one.text for one in checks if one.what == "throttling"] == ["It needs other rights."]


def test_a_device_that_cannot_be_opened_is_a_fault() -> None:
    """It is not among the devices, only among the reasons."""
    checks = check(
        vendor(
            reading(0),
            reasons=(
                Reason("GPU 1", "device", "Denied.", DENIED),
                Reason("", "driver version", "Old.", UNSUPPORTED),
            ),
            notes=("Denied.", "A note."),
        )
    )

    assert [(one.what, one.state, one.text) for one in checks[1:4]] == [
        ("GPU 1", FAILED, "Denied."),
        ("NVIDIA", NOTHING, "Old."),
        ("NVIDIA", WARNING, "A note."),
    ]


@pytest.mark.parametrize("reasons", [(), (Reason("GPU-0", "used_bytes", "It was lost.", LOST),)])
def test_a_lost_device_is_one_fault(reasons: tuple[Reason, ...]) -> None:
    """Not one for each of its figures."""
    checks = check(vendor(gpus=(gpu(),), readings=GpuReadings(1.0), reasons=reasons))

    assert states(checks, FAILED) == ["device"]
    assert checks[0].text == "0 of 1 device read through nvml"


def test_trouble_of_what_is_no_listed_device_comes_with_what_to_do_too() -> None:
    """A device whose UUID cannot be read has another name from then on."""
    reasons = (Reason("GPU 0", "uuid", "GPU 0 could not be read for a while.", TROUBLE),)
    checks = check(vendor(reading(0), gpus=(gpu(0),), reasons=reasons))

    assert [one.text[:38] for one in checks if one.what == "what to do"] == [
        "If this persists, reset the device or "
    ]


@pytest.mark.parametrize("kind", [LOST, TROUBLE, DENIED])
def test_a_device_that_is_lost_or_fails_comes_with_what_to_do(kind: str) -> None:
    """One that is only denied needs no reset."""
    unopened = gpu(1, uuid="GPU 1", name="")
    reasons = (Reason("GPU 1", "device", "It is lost.", kind),)
    checks = check(vendor(reading(0), gpus=(gpu(0), unopened), reasons=reasons))
    advice = [(one.group, one.text) for one in checks if one.what == "what to do"]

    assert [(one.group, one.text) for one in checks if one.what == "device"] == [("GPU 1", "It is lost.")]
    assert len(advice) == (kind != DENIED)
    assert all(group == "GPU 1" and "`nvidia-smi --gpu-reset -i 1`" in text for group, text in advice)


def test_a_device_of_an_unknown_vendor_is_reset_somehow() -> None:
    """Its command is not known."""
    reasons = (Reason("GPU-0", "power_watts", "It fails.", TROUBLE),)
    checks = check(vendor(reading(power_watts=None), gpus=(gpu(vendor="moore"),), reasons=reasons))

    assert checks[-1].text.startswith("If this persists, reset the device or reboot;")


@pytest.mark.parametrize(
    ("fields", "state"),
    [
        ({"processes": (process(),)}, FINE),
        ({"processes": (process(), process(pid=5, mib=None))}, FAILED),
        ({"processes": (process(mib=None),)}, FAILED),
        ({"lists": False}, FAILED),
        ({"lists": False, "reasons": (Reason("GPU-0", "lists_processes", "No.", UNSUPPORTED),)}, NOTHING),
    ],
)
def test_a_device_must_list_its_processes(fields: dict[str, Any], state: str) -> None:
    """With their memory."""
    lists = fields.pop("lists", True)
    checks = check(vendor(reading(lists_processes=lists), **fields))

    assert [check.state for check in checks if check.what == "processes"] == [state]


def test_a_device_that_jobs_cannot_use_is_a_warning() -> None:
    """It is measured anyway."""
    checks = check(vendor(reading(), gpus=(gpu(is_visible=False),)))

    assert states(checks, WARNING) == ["visible"]
    assert states(checks, FAILED) == []


def test_nobody_who_can_be_asked_is_one_failed_check() -> None:
    """With the reason."""
    assert fail_gpus("It crashed.") == Check("GPUs", "drivers", FAILED, "It crashed.")


@pytest.mark.parametrize(("kind", "expected"), [(DENIED, [FAILED]), (UNSUPPORTED, [NOTHING])])
def test_what_is_measured_besides_is_told_only_if_it_is_missing(kind: str, expected: list[str]) -> None:
    """Most devices do not have all of it."""
    reasons = (Reason("GPU-0", "memory_errors", "Why not.", kind),)
    checks = check(vendor(reading(0), gpus=(gpu(0),), reasons=reasons))

    assert [one.state for one in checks if one.what == "memory errors"] == expected

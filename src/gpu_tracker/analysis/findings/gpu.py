"""Whether the devices had work: unused, idle, waiting, unbalanced, slowed down. Pure."""

from __future__ import annotations

from ...core.model import ESTIMATE, GPU_FAULT
from ...core.text import count_of
from ...core.units import humanize_bytes, humanize_seconds, write_clock
from .finding import CERTAIN, LIKELY, NOTE, POSSIBLE, SERIOUS, WARNING
from .gpu_memory import find_pool
from .rule import OWN, Found, Rule, Threshold, judge_gpus, say_too_few, say_too_little
from .spans import find_longest, find_quantile, find_share, join

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...core.model import Event
    from .facts import Facts, GpuFacts
    from .rule import Answer, Limits

_JOBSTATS = "jobstats, Princeton"
_SMDEBUG = "SageMaker Debugger"
_NVIDIA = "NVIDIA's documentation"
# What explains by its name that a device waits.
_QUIET_REGIONS = ("eval", "valid", "save", "checkpoint", "wait", "load")
_SERVER = "its memory is filled, as by a server that waits for requests"
_SERVER_PERCENT = Threshold("server_percent", 90, "Job Defense Shield excludes jobs that fill the memory")


# ---- 1. Unused.


def judge_unused(facts: Facts, limits: Limits) -> Answer:
    """Devices that the job may use, and on which it was never seen."""
    if facts.summary.seconds < limits["least_seconds"]:
        return f"the run was shorter than {humanize_seconds(limits['least_seconds'])}"
    idle = [gpu for gpu in facts.gpus if _is_offered(gpu, facts) and not gpu.has_job]
    if not idle:
        return None if facts.gpus else "there is no GPU"
    if any(gpu.summary.job_bytes.combined is None or gpu.summary.basis == ESTIMATE for gpu in idle):
        return "the processes on a GPU are not known"
    is_granted = facts.allocation.granted_gpus is not None or facts.header.gpu_uuids is not None
    if not is_granted and not facts.used_gpus and not _is_python(facts):
        return "nobody gave a GPU to this job"
    names = ", ".join(gpu.label for gpu in idle)
    verb = "was" if len(idle) == 1 else "were"
    return Found(
        f"GPU {names} {verb} there for {humanize_seconds(facts.summary.seconds)} and never used.",
        WARNING if is_granted else NOTE,
        CERTAIN if is_granted else POSSIBLE,
        (("unused_gpus", len(idle)), ("seconds", facts.summary.seconds)),
    )


def _is_offered(gpu: GpuFacts, facts: Facts) -> bool:
    named = facts.header.gpu_uuids
    return gpu.summary.gpu.is_visible if named is None else gpu.summary.gpu.uuid in named


def _is_python(facts: Facts) -> bool:
    """Programs in Python are those that forget to move a model to the GPU."""
    words = [word.rpartition("/")[2] for word in facts.header.command[:2]]
    return any(word.startswith("python") or word.endswith(".py") for word in words)


# ---- 2. Idle.


def judge_idle(facts: Facts, limits: Limits) -> Answer:
    """The longest time in which a device held memory of the job and did nothing."""
    return judge_gpus(facts, lambda gpu: _judge_idle(gpu, facts, limits))


def _judge_idle(gpu: GpuFacts, facts: Facts, limits: Limits) -> Answer:
    stretch = find_idle(gpu, limits)
    if stretch is None:
        return None if gpu.memory_bytes and gpu.job_bytes.values else "the job's memory there is not known"
    start, end = stretch
    if end - start < limits["least_seconds"]:
        return None
    if _is_server(gpu, limits):
        return _SERVER
    held = max(
        held
        for held, last in zip(gpu.job_bytes.values, gpu.job_bytes.end, strict=True)
        if start < last <= end
    )
    region = _name_quiet_region(facts, start, end)
    where = f", in {region}" if region else ""
    return Found(
        f"GPU {gpu.label} held {humanize_bytes(held)} and did nothing from {write_clock(start)} to {write_clock(end)}{where}.",
        SERIOUS if end - start >= limits["serious_seconds"] and not region else WARNING,
        LIKELY,
        (("idle_seconds", end - start), ("held_bytes", held)),
        start,
        end,
    )


def find_idle(gpu: GpuFacts, limits: Limits) -> tuple[float, float] | None:
    """From when to when it was idle while it held the job's memory."""
    least = limits["held_percent"] / 100 * gpu.memory_bytes
    both = join(gpu.busy_ever_percent, gpu.job_bytes)
    if not gpu.memory_bytes:
        return None
    return find_longest(both, lambda pair: pair[0] < limits["idle_percent"] and pair[1] > least)


def _name_quiet_region(facts: Facts, start: float, end: float) -> str:
    """A call that took at least half of that time, and says by its name that the device waits."""
    for call in facts.calls:
        last = facts.summary.seconds if call.end_seconds is None else call.end_seconds
        overlap = min(end, last) - max(start, call.start_seconds)
        name = "/".join(call.path)
        if 2 * overlap >= end - start and any(word in name for word in _QUIET_REGIONS):
            return name
    return ""


# ---- 3. Low.


def judge_low(facts: Facts, limits: Limits) -> Answer:
    """The mean utilization of the report."""
    return judge_gpus(facts, lambda gpu: _judge_low(gpu, limits))


def _judge_low(gpu: GpuFacts, limits: Limits) -> Answer:
    mean = gpu.mean_percent
    if mean is None:
        return "utilization was not measured"
    if mean >= limits["note_percent"]:
        return None
    if too_few := say_too_little(gpu, limits):
        return too_few
    if not gpu.is_busy_own and gpu.is_shared:
        return "others use the device, and utilization is that of all"
    if _is_server(gpu, limits):
        return _SERVER
    return Found(
        f"GPU {gpu.label} was busy for {mean:.0f} % of the time{gpu.whose_busy}.",
        SERIOUS if mean <= limits["serious_percent"] else NOTE,
        POSSIBLE if gpu.summary.utilization_basis == ESTIMATE else LIKELY,
        (("mean_percent", mean),),
    )


def _is_server(gpu: GpuFacts, limits: Limits) -> bool:
    """Whether the job has filled the memory, as what waits for requests does."""
    held = gpu.summary.job_bytes.combined or 0
    return gpu.memory_bytes > 0 and 100 * held >= limits["server_percent"] * gpu.memory_bytes


# ---- 5. The CPU holds it up.

_USE_FREE_CORES = (
    "Probably the input pipeline: more workers, less work per item. Mark a region data_wait to be sure."
)


def judge_cpu_bound(facts: Facts, limits: Limits) -> Answer:
    """A device that waits while cores are busy."""
    if facts.interval_seconds is not None and facts.interval_seconds > limits["longest_interval"]:
        return f"intervals of {humanize_seconds(facts.interval_seconds)} are too long to see it"
    if facts.data_wait_share is not None:
        return "waiting-for-data says more"
    return judge_gpus(facts, lambda gpu: _judge_cpu_bound(gpu, facts, limits))


def _judge_cpu_bound(gpu: GpuFacts, facts: Facts, limits: Limits) -> Answer:
    both = join(gpu.busy_percent, facts.cores.combined)
    if too_few := say_too_little(gpu, limits) or say_too_few(both, limits):
        return too_few
    most = limits["cpu_percent"] / 100 * facts.summary.n_expected_cores
    share = find_share(both, lambda pair: pair[0] < limits["gpu_percent"] and pair[1] > most)
    middle = find_quantile(gpu.busy_percent, 0.5)
    cores = find_quantile(facts.cores.combined, 0.5)
    evidence = (("share", share), ("gpu_median_percent", middle), ("median_cores", cores))
    if share > limits["time_share"]:
        return Found(
            f"GPU {gpu.label} waited while all cores were busy for {100 * share:.0f} % of the time.",
            WARNING,
            LIKELY,
            evidence,
        )
    has_free_cores = cores <= most
    if middle < limits["soft_gpu_percent"] and cores >= limits["soft_cores"]:
        return Found(
            f"GPU {gpu.label} was less than {limits['soft_gpu_percent']:g} % busy{gpu.busy_by} for half of the time "
            f"(median {middle:.0f} %), while {cores:.1f} cores worked.",
            NOTE,
            POSSIBLE,
            evidence,
            advice=_USE_FREE_CORES if has_free_cores else "",
        )
    return None


# ---- 6. Fluctuating.


def judge_fluctuating(facts: Facts, limits: Limits) -> Answer:
    """Full and empty in turn."""
    if facts.interval_seconds is not None and facts.interval_seconds > limits["longest_interval"]:
        return f"intervals of {humanize_seconds(facts.interval_seconds)} are too long to see it"
    if facts.data_wait_share is not None:
        return "waiting-for-data says more"
    return judge_gpus(facts, lambda gpu: _judge_fluctuating(gpu, limits))


def _judge_fluctuating(gpu: GpuFacts, limits: Limits) -> Answer:
    if too_few := say_too_little(gpu, limits):
        return too_few
    low, high = find_quantile(gpu.busy_percent, 0.05), find_quantile(gpu.busy_percent, 0.95)
    if high < limits["high_percent"] or low >= limits["low_percent"]:
        return None
    idle = find_longest(gpu.busy_percent, lambda percent: percent < limits["low_percent"])
    if idle is not None and idle[1] - idle[0] >= limits["stretch_seconds"]:
        return "one long idle time explains it"
    return Found(
        f"GPU {gpu.label} alternates between {high:.0f} % and {low:.0f} % busy{gpu.busy_by}.",
        NOTE,
        LIKELY,
        (("p5_percent", low), ("p95_percent", high)),
    )


# ---- 7. Unbalanced.


def judge_imbalance(facts: Facts, limits: Limits) -> Answer:
    """Devices of the job that have different loads."""
    means = [(gpu.mean_percent, gpu) for gpu in facts.used_gpus if gpu.mean_percent is not None]
    if len(means) < 2:
        return "the job used fewer than two GPUs"
    for _, gpu in means:
        if too_few := say_too_little(gpu, limits):
            return too_few
    (least, lazy), (most, keen) = min(means, key=_by_percent), max(means, key=_by_percent)
    if most < limits["least_percent"]:
        return "none of them was busy"
    if least / most >= limits["ratio"] and most - least < limits["points"]:
        return None
    return Found(
        f"GPU {lazy.label} was {least:.0f} % busy{lazy.whose_busy}, GPU {keen.label} {most:.0f} %{keen.whose_busy}.",
        NOTE,
        POSSIBLE,
        (("least_percent", least), ("most_percent", most)),
    )


def _by_percent(pair: tuple[float, GpuFacts]) -> float:
    return pair[0]


# ---- 8. Room.


def judge_room(facts: Facts, limits: Limits) -> Answer:
    """Nothing is full: neither cores, nor devices, nor their memory."""
    if too_few := say_too_few(facts.cores.combined, limits):
        return too_few
    cores = 100 * find_quantile(facts.cores.combined, 0.95) / (facts.summary.n_expected_cores or 1)
    return judge_gpus(facts, lambda gpu: _judge_room(gpu, cores, limits))


def _judge_room(gpu: GpuFacts, cores_percent: float, limits: Limits) -> Answer:
    if too_few := say_too_little(gpu, limits):
        return too_few
    if not gpu.is_busy_complete:
        return "its utilization is not known all of the time"
    if not gpu.memory_bytes or not gpu.used_bytes.values:
        return "its memory is not known"
    if find_pool(gpu, limits["pool_percent"], limits["pool_seconds"]) is not None:
        return "the framework took its memory in advance"
    busy = find_quantile(gpu.busy_percent, 0.95)
    memory = 100 * find_quantile(gpu.used_bytes, 0.95) / gpu.memory_bytes
    if (
        max(cores_percent, busy, memory) >= limits["percent"]
        or (gpu.mean_percent or 0) < limits["least_percent"]
    ):
        return None
    return Found(
        f"For 95 % of the time, GPU {gpu.label} used at most {memory:.0f} % of its memory and was at most {busy:.0f} % busy{gpu.busy_by}, "
        f"with at most {cores_percent:.0f} % of the cores in use.",
        NOTE,
        POSSIBLE,
        (("memory_percent", memory), ("busy_percent", busy), ("cores_percent", cores_percent)),
    )


# ---- 14. Throttled.


def judge_throttled(facts: Facts, limits: Limits) -> Answer:
    """What held the clocks down, and for how long, as in the report."""
    return judge_gpus(facts, lambda gpu: _judge_throttled(gpu, limits))


def _judge_throttled(gpu: GpuFacts, limits: Limits) -> Answer:
    if not gpu.is_known_enough:
        return "throttling is not known for most of the time"
    shares = {reason: 100 * share for reason, share in gpu.summary.throttled}
    heat = gpu.summary.max_celsius
    at_most = "" if heat is None else f" (up to {heat:.0f} °C)"
    for reason, name, severity, words in (
        (
            "hardware",
            "hardware_percent",
            SERIOUS,
            f"The hardware slowed GPU {{}} down for {{:.0f}} % of the time{at_most}.",
        ),
        ("heat", "heat_percent", WARNING, f"Heat slowed GPU {{}} down for {{:.0f}} % of the time{at_most}."),
        (
            "power",
            "power_percent",
            NOTE,
            "The power limit held the clocks of GPU {} down for {:.0f} % of the time.",
        ),
    ):
        percent = shares.get(reason, 0.0)
        if percent > limits[name]:
            return Found(words.format(gpu.label, percent), severity, CERTAIN, (("percent", percent),))
    return None if gpu.summary.throttled or gpu.busy_percent.values else "throttling was not measured"


# ---- 15. Busy, but cool.


def judge_cool(facts: Facts, limits: Limits) -> Answer:
    """Busy by its utilization, but not by its power."""
    return judge_gpus(facts, lambda gpu: _judge_cool(gpu, limits))


def _judge_cool(gpu: GpuFacts, limits: Limits) -> Answer:
    limit, watts, mean = gpu.summary.gpu.power_limit_watts, gpu.summary.mean_watts, gpu.summary.mean_percent
    if not limit or watts is None or mean is None:
        return "power, or its limit, was not measured"
    if gpu.summary.gpu.parent_uuid is not None:
        return "a part of a device has no power of its own"
    if too_few := say_too_little(gpu, limits):
        return too_few
    percent = 100 * watts / limit
    if mean < limits["busy_percent"] or percent >= limits["power_percent"]:
        return None
    return Found(
        f"GPU {gpu.label} was {mean:.0f} % busy at {percent:.0f} % of its power.",
        NOTE,
        POSSIBLE,
        (("busy_percent", mean), ("power_percent", percent)),
    )


# ---- 15b. Few multiprocessors.


def judge_ineffective(facts: Facts, limits: Limits) -> Answer:
    """Busy, but with few of its multiprocessors."""
    return judge_gpus(facts, lambda gpu: _judge_ineffective(gpu, limits))


def _judge_ineffective(gpu: GpuFacts, limits: Limits) -> Answer:
    # Activity is that of all processes, and so is the utilization that it is compared with.
    active, mean = gpu.summary.activity.sm_percent, gpu.summary.mean_percent
    if active is None or mean is None:
        return "the activity of multiprocessors was not measured"
    if too_few := say_too_few(gpu.sm_percent, limits):
        return too_few
    if mean < limits["busy_percent"] or active >= limits["active_percent"]:
        return None
    return Found(
        f"GPU {gpu.label} was {mean:.0f} % busy, but only {active:.0f} % of its multiprocessors had work.",
        WARNING,
        LIKELY,
        (("busy_percent", mean), ("active_percent", active)),
    )


# ---- 33. Too big.


def judge_too_big(facts: Facts, limits: Limits) -> Answer:
    """A large device for little work."""
    if facts.summary.seconds < limits["least_seconds"]:
        return f"the run was shorter than {humanize_seconds(limits['least_seconds'])}"
    cores = (facts.summary.cpu.combined.mean_percent or 0) / 100
    return judge_gpus(facts, lambda gpu: _judge_too_big(gpu, cores, limits))


def _judge_too_big(gpu: GpuFacts, cores: float, limits: Limits) -> Answer:
    mean, held = gpu.mean_percent, gpu.summary.job_bytes.combined
    if mean is None or held is None:
        return "utilization or memory was not measured"
    if too_few := say_too_little(gpu, limits):
        return too_few
    if gpu.summary.gpu.parent_uuid is not None:
        return "it is a part of a device already"
    is_small = mean < limits["percent"] and held < limits["held_bytes"] and cores <= limits["cores"]
    if not is_small or gpu.memory_bytes < limits["large_bytes"]:
        return None
    return Found(
        f"GPU {gpu.label} ({humanize_bytes(gpu.memory_bytes)}) was {mean:.0f} % busy{gpu.whose_busy}, with {humanize_bytes(held)}.",
        NOTE,
        POSSIBLE,
        (("mean_percent", mean), ("held_bytes", held), ("cores", cores)),
    )


# ---- 36. Faults.


def judge_faults(facts: Facts, _: Limits) -> Answer:
    """What the driver reported, the worst first. An error on a device that the job did not use is another program's."""
    if not facts.gpu_faults:
        return None if facts.gpus else "there is no GPU"
    used = {gpu.summary.gpu.place: gpu for gpu in facts.gpus if gpu.has_job}
    faults = sorted(
        (event for event in facts.gpu_faults if event.kind == GPU_FAULT or _find_place(event) in used),
        key=lambda event: (event.kind != GPU_FAULT, event.at_seconds),
    )
    if not faults:
        return "the job did not use the GPU that reported an error"
    worst, others = faults[0], len(faults) - 1
    was = "was" if others == 1 else "were"
    more = f" There {was} {count_of(others, 'other error')}: see the notes." if others else ""
    sentence = f"{worst.text.removesuffix('.')}, at {write_clock(worst.at_seconds)}.{more}"
    evidence = (("errors", float(len(faults))),)
    if worst.kind == GPU_FAULT:
        return Found(sentence, SERIOUS, CERTAIN, evidence, worst.at_seconds, worst.at_seconds)
    is_shared = used[_find_place(worst)].is_shared
    return Found(
        f"{sentence} It may be another program's." if is_shared else sentence,
        WARNING,
        POSSIBLE if is_shared else LIKELY,
        evidence,
        worst.at_seconds,
        worst.at_seconds,
        "Look for the error in the program: `compute-sanitizer` names the kernel. If other programs have it too, tell the "
        "administrator of the machine.",
    )


def _find_place(event: Event) -> str:
    """Of the device that it is about, as it begins."""
    return event.text.removeprefix("GPU ").partition(": ")[0]


FAULTS = Rule(
    "36",
    "gpu-faults",
    "errors that the NVIDIA driver reports (Xid), and memory errors that it could not correct",
    (),
    "devices that the job may not use; errors of programs on one that it did not use; corrected memory errors and what happens "
    "when a program is killed, which are notes",
    SERIOUS,
    "GPU 0: the driver reports Xid 79: the device has fallen off the bus, at 1:02:03.",
    "Tell the administrator of the machine; until then, leave the device out (CUDA_VISIBLE_DEVICES).",
    "NVIDIA's list of Xid errors has another meaning for it with this driver",
    judge_faults,
)

RULES = (
    Rule(
        "1",
        "gpu-unused",
        "devices that the job may use, and the processes on them",
        (Threshold("least_seconds", 300, _JOBSTATS),),
        "the processes on the device are not known; without a scheduler, programs that are not in Python and use no GPU at all",
        WARNING,
        "GPU 1 was there for 3 h and never used.",
        "Can the program use it (is the model on the device)? If not, ask for fewer.",
        "another tool shows a process of the job there",
        judge_unused,
        needs_all_time=True,
    ),
    Rule(
        "2",
        "gpu-idle-stretch",
        "utilization of a device, and the memory that the job holds there",
        (
            Threshold("least_seconds", 900, OWN),
            Threshold("serious_seconds", 3600, "Job Defense Shield warns after 60 minutes"),
            Threshold("idle_percent", 2, OWN),
            Threshold("held_percent", 5, OWN),
            _SERVER_PERCENT,
        ),
        "a job that fills the memory, as a server that waits for requests; an open region whose name says why "
        "(eval, save, wait...) is named instead, and it is never serious then",
        SERIOUS,
        "GPU 0 held 18 GB and did nothing from 2:10:00 to 2:57:00.",
        "Free the device while it is not needed, or do that work in another job.",
        "the program waits on purpose, as a server does",
        judge_idle,
    ),
    Rule(
        "3",
        "gpu-low",
        "mean utilization of a device, of the job alone where the driver reports it",
        (
            Threshold("serious_percent", 15, _JOBSTATS),
            Threshold("note_percent", 25, _JOBSTATS),
            _SERVER_PERCENT,
        ),
        "memory filled on purpose (a server); others on the device, if the driver cannot separate them",
        SERIOUS,
        "GPU 0 was busy for 12 % of the time.",
        "Look at what it waits for: data, transfers, the CPU; or use a smaller device.",
        "a profiler shows kernels running most of the time",
        judge_low,
        needs_all_time=True,
    ),
    Rule(
        "5",
        "cpu-holds-gpu",
        "utilization of a device and busy cores in the same intervals",
        (
            Threshold("gpu_percent", 10, _SMDEBUG),
            Threshold("cpu_percent", 90, _SMDEBUG),
            Threshold("time_share", 0.5, _SMDEBUG),
            Threshold("soft_gpu_percent", 50, "PyTorch Kineto"),
            Threshold("soft_cores", 0.9, OWN),
            Threshold("longest_interval", 30, OWN),
        ),
        "long intervals; a region data_wait, which says more",
        WARNING,
        "GPU 0 waited while all cores were busy for 61 % of the time.",
        "More workers will not help: do less or cheaper work per item (precompute it, or move it to the GPU), or ask for more cores.",
        "the time in a region data_wait is small",
        judge_cpu_bound,
        needs_all_time=True,
    ),
    Rule(
        "6",
        "gpu-fluctuates",
        "utilization of a device in every interval",
        (
            Threshold("high_percent", 70, _SMDEBUG),
            Threshold("low_percent", 10, _SMDEBUG),
            Threshold("longest_interval", 5, OWN),
            Threshold("stretch_seconds", 900, OWN),
        ),
        "long intervals; one long idle time; a region data_wait, which says more",
        NOTE,
        "GPU 0 alternates between 97 % and 0 % busy.",
        "Let loading, evaluation or saving overlap with computing.",
        "the program alternates on purpose, as with an optimizer on the CPU",
        judge_fluctuating,
        needs_all_time=True,
    ),
    Rule(
        "7",
        "gpu-imbalance",
        "mean utilization of the devices that the job used: the least busy one below `ratio` of the busiest, or at "
        "least `points` below it",
        (
            Threshold("ratio", 0.6, "our choice; SageMaker Debugger takes 0.5"),
            Threshold("points", 25, OWN),
            Threshold("least_percent", 25, OWN),
        ),
        "fewer than two devices; none of them busy. Stages of a pipeline may differ by design",
        NOTE,
        "GPU 1 was 31 % busy, GPU 0 88 %.",
        "Divide the work evenly, or ask for fewer devices.",
        "the stages of a pipeline are meant to differ",
        judge_imbalance,
        needs_all_time=True,
    ),
    Rule(
        "8",
        "room-for-batch",
        "what cores, utilization and memory of a device were below for 95 % of the time",
        (
            Threshold("percent", 70, _SMDEBUG),
            Threshold("least_percent", 15, _JOBSTATS),
            Threshold("pool_percent", 70, OWN),
            Threshold("pool_seconds", 30, OWN),
        ),
        "memory taken in advance by the framework; a device that is hardly used (gpu-low says so)",
        NOTE,
        "For 95 % of the time, GPU 0 used at most 31 % of its memory and was at most 42 % busy, with at most 20 % of the cores in use.",
        "A larger batch may be faster.",
        "a larger batch is not faster, or learns worse",
        judge_room,
        needs_all_time=True,
    ),
    Rule(
        "14",
        "clocks-held-down",
        "how long the driver throttled the clocks, by reason",
        (
            Threshold("hardware_percent", 1, _NVIDIA),
            Threshold("heat_percent", 10, "gpuprof"),
            Threshold("power_percent", 50, OWN),
        ),
        "power alone is normal at full load, so it is only a note; idle clocks do not count",
        SERIOUS,
        "Heat slowed GPU 0 down for 23 % of the time (up to 87 °C).",
        "Check cooling and power of the machine, or tell its administrator.",
        "the clocks that the driver reports stay at their top",
        judge_throttled,
        needs_all_time=True,
    ),
    Rule(
        "15",
        "busy-but-cool",
        "utilization, power and power limit of a device",
        (Threshold("busy_percent", 90, OWN), Threshold("power_percent", 50, OWN)),
        "instances of a device; the power limit is not reported",
        NOTE,
        "GPU 0 was 98 % busy at 38 % of its power.",
        "Kernels are small or wait for memory: larger batches, fused kernels, lower precision.",
        "a profiler shows full multiprocessors; video coders draw little power, too",
        judge_cool,
        needs_all_time=True,
    ),
    Rule(
        "15b",
        "sm-ineffective",
        "utilization, and activity of the multiprocessors",
        (Threshold("active_percent", 50, _NVIDIA), Threshold("busy_percent", 80, OWN)),
        "before Hopper it is not measured",
        WARNING,
        "GPU 0 was 98 % busy, but only 31 % of its multiprocessors had work.",
        "Give each kernel more work: larger batches, fused kernels.",
        "a profiler shows full multiprocessors",
        judge_ineffective,
        needs_all_time=True,
    ),
    Rule(
        "33",
        "gpu-too-big",
        "mean utilization, memory of the job and busy cores",
        (
            Threshold("percent", 15, _JOBSTATS),
            Threshold("held_bytes", 10e9, _JOBSTATS),
            Threshold("cores", 2, _JOBSTATS),
            Threshold("large_bytes", 20e9, OWN),
            Threshold("least_seconds", 300, _JOBSTATS),
        ),
        "instances of a device, and small devices; one run says little",
        NOTE,
        "GPU 0 (80 GB) was 6 % busy, with 3.1 GB.",
        "A smaller GPU, or an instance of one (MIG), would do.",
        "other runs of the same program need more",
        judge_too_big,
        needs_the_end=True,
        needs_all_time=True,
    ),
    FAULTS,
)

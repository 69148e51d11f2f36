"""Memory of devices: tight, refused, fragmented, taken in advance, held by others. Pure."""

from __future__ import annotations

from ...core.text import count_of
from ...core.units import humanize_bytes, write_clock
from .finding import CERTAIN, LIKELY, NOTE, POSSIBLE, SERIOUS, WARNING
from .rule import OWN, Found, Rule, Threshold, judge_gpus, say_too_few
from .spans import join, skip_until

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..frameworks import FrameworkSummary
    from .facts import Facts, GpuFacts
    from .rule import Answer, Limits

_TAKING_FRAMEWORKS = ("JAX", "TensorFlow")
_POOL = (Threshold("pool_percent", 70, OWN), Threshold("pool_seconds", 30, OWN))
_FLAT = 0.01


def find_pool(gpu: GpuFacts, percent: float, seconds: float) -> FrameworkSummary | None:
    """The framework that took most of the memory at once and kept it, whatever it needs."""
    taker = next((one for one in gpu.frameworks if one.memory.framework in _TAKING_FRAMEWORKS), None)
    return taker if taker is not None and _is_taken_at_once(gpu, percent, seconds) else None


def _is_taken_at_once(gpu: GpuFacts, percent: float, seconds: float) -> bool:
    """Whether the job took most of the memory at the start, and has held as much ever since."""
    firsts = (first for first, size in zip(gpu.job_bytes.start, gpu.job_bytes.values, strict=True) if size)
    later = skip_until(gpu.job_bytes, next(firsts, 0.0) + seconds).values
    least = percent / 100 * gpu.memory_bytes
    return bool(later) and min(later) >= least > 0 and max(later) - min(later) <= _FLAT * gpu.memory_bytes


# ---- 9. Tight.


def judge_tight(facts: Facts, limits: Limits) -> Answer:
    """The peak of a device against its memory."""
    return judge_gpus(facts, lambda gpu: _judge_tight(gpu, limits))


def _judge_tight(gpu: GpuFacts, limits: Limits) -> Answer:
    used = gpu.summary.used_bytes
    if used is None or not gpu.memory_bytes:
        return "its memory is not known"
    if find_pool(gpu, limits["pool_percent"], limits["pool_seconds"]) is not None:
        return "the framework took its memory in advance"
    percent = 100 * used / gpu.memory_bytes
    # With much of the device free, what did not fit was one huge request.
    is_filled = percent > limits["flush_percent"]
    flushes = sum(one.memory.flushes for one in gpu.frameworks) if is_filled else 0
    if percent <= limits["percent"] and not flushes:
        return None
    if not flushes and _is_waiting_server(gpu, limits):
        return "its memory is filled, as by a server that waits for requests"
    times = f", and the framework had to empty its cache {count_of(flushes, 'time')}" if flushes else ""
    return Found(
        f"The memory of GPU {gpu.label} was up to {percent:.0f} % full "
        f"({humanize_bytes(used)} of {humanize_bytes(gpu.memory_bytes)}){times}.",
        SERIOUS if percent > limits["serious_percent"] or flushes else WARNING,
        LIKELY,
        (("percent", percent), ("flushes", flushes)),
    )


def _is_waiting_server(gpu: GpuFacts, limits: Limits) -> bool:
    """Whether it filled the memory at the start and had little to do: the level is its choice, not its need."""
    is_waiting = gpu.mean_percent is not None and gpu.mean_percent < limits["waiting_percent"]
    return is_waiting and _is_taken_at_once(gpu, limits["pool_percent"], limits["pool_seconds"])


# ---- 10. Refused.


def judge_refused(facts: Facts, _limits: Limits) -> Answer:
    """Allocations that a framework could not make."""
    frameworks = facts.reported.frameworks
    if not frameworks:
        return "no framework told its memory"
    failures = sum(one.memory.failures for one in frameworks)
    if not failures:
        return None
    went_on = "" if facts.has_failed else ", and it went on"
    names = ", ".join(dict.fromkeys(one.memory.device for one in frameworks if one.memory.failures))
    return Found(
        f"{count_of(failures, 'allocation')} failed on {names}{went_on}.",
        SERIOUS if facts.has_failed else WARNING,
        CERTAIN,
        (("failures", failures),),
    )


# ---- 11. Fragmented.


def judge_fragmented(facts: Facts, limits: Limits) -> Answer:
    """Memory that a framework holds, and cannot use."""
    if not facts.reported.frameworks:
        return "no framework told its memory"
    answers = (_judge_fragmented(one, limits) for one in facts.reported.frameworks)
    return next((answer for answer in answers if answer is not None), None)


def _judge_fragmented(one: FrameworkSummary, limits: Limits) -> Answer:
    held, cached = one.memory.split_held_bytes, one.cached_bytes
    if not held or cached is None or not one.memory.flushes or 100 * cached <= limits["percent"] * held:
        return None
    return Found(
        f"{humanize_bytes(cached)} of {humanize_bytes(held)} that {one.memory.framework} held on {one.memory.device} were not "
        f"in use, and yet it had to empty its cache.",
        WARNING,
        POSSIBLE,
        (("unused_bytes", cached), ("held_bytes", held), ("flushes", one.memory.flushes)),
    )


# ---- 12. Taken in advance.


def judge_pool(facts: Facts, limits: Limits) -> Answer:
    """Memory that says nothing about need."""
    return judge_gpus(facts, lambda gpu: _judge_pool(gpu, limits))


def _judge_pool(gpu: GpuFacts, limits: Limits) -> Answer:
    if not gpu.frameworks or not gpu.job_bytes.values:
        return "no framework told its memory there"
    taker = find_pool(gpu, limits["pool_percent"], limits["pool_seconds"])
    if taker is None:
        return None
    held, need = gpu.summary.job_bytes.combined or 0, taker.memory.peak_in_use_bytes
    return Found(
        f"{taker.memory.framework} took {100 * held / gpu.memory_bytes:.0f} % of GPU {gpu.label} at the start; "
        f"its own peak was {humanize_bytes(need)}.",
        NOTE,
        LIKELY,
        (("held_bytes", held), ("peak_in_use_bytes", need)),
    )


# ---- 13. Others.


def judge_others(facts: Facts, limits: Limits) -> Answer:
    """Memory that processes outside the job hold on its devices."""
    return judge_gpus(facts, lambda gpu: _judge_others(gpu, limits))


def _judge_others(gpu: GpuFacts, limits: Limits) -> Answer:
    both = join(gpu.used_bytes, gpu.job_bytes)
    if too_few := say_too_few(both, limits):
        return too_few
    few_percent = limits["percent"] / 100 * gpu.memory_bytes
    least = min(limits["bytes"], few_percent) if gpu.memory_bytes else limits["bytes"]
    others = [(used - job, last) for (used, job), last in zip(both.values, both.end, strict=True)]
    most, at = max(others)
    # What is used and what the job holds are not read at the same instant: a single interval may deceive.
    if sum(size > least for size, _ in others) < limits["intervals"]:
        return None
    return Found(
        f"Others held up to {humanize_bytes(most)} of GPU {gpu.label} (at {write_clock(at)}).",
        NOTE,
        LIKELY,
        (("others_bytes", most),),
        at,
        at,
    )


RULES = (
    Rule(
        "9",
        "gpu-memory-tight",
        "peak of a device's memory, and how often a framework emptied its cache",
        (
            Threshold("percent", 90, "PyTorch Kineto, gpuprof"),
            Threshold("serious_percent", 97, "gpuprof"),
            Threshold("flush_percent", 50, OWN),
            Threshold("waiting_percent", 25, "as of gpu-low"),
            *_POOL,
        ),
        "memory taken in advance by JAX or TensorFlow, or by a server that waits for requests; a cache emptied while much was free",
        SERIOUS,
        "The memory of GPU 0 was up to 95 % full (22.8 GB of 24 GB), and the framework had to empty its cache 3 times.",
        "A slightly larger input may not fit: reduce the batch, or use a larger device.",
        "the same run on a device with less memory succeeds",
        judge_tight,
    ),
    Rule(
        "10",
        "gpu-out-of-memory",
        "allocations that a framework could not make",
        (),
        "a job that goes on (it looks for the largest batch, say) gets a warning only",
        SERIOUS,
        "2 allocations failed on cuda:0.",
        "Use a smaller batch, or free what is not needed before.",
        "the job catches the error on purpose",
        judge_refused,
    ),
    Rule(
        "11",
        "fragmentation",
        "what a framework holds and uses at its fullest, and how often it emptied its cache",
        (Threshold("percent", 30, OWN),),
        "allocators that tell no figures (cudaMallocAsync); a cache that was never emptied",
        WARNING,
        "4 GB of 12 GB that PyTorch held on cuda:0 were not in use, and yet it had to empty its cache.",
        "Try PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True.",
        "with that setting the cache is emptied as often",
        judge_fragmented,
    ),
    Rule(
        "12",
        "pre-allocated-pool",
        "memory of the job on a device over time, with JAX or TensorFlow",
        _POOL,
        "other frameworks",
        NOTE,
        "JAX took 75 % of GPU 0 at the start; its own peak was 9 GB.",
        "Size by the framework's own peak; XLA_PYTHON_CLIENT_PREALLOCATE=false or set_memory_growth shows the need.",
        "the framework's own figure is as large",
        judge_pool,
    ),
    Rule(
        "13",
        "others-on-gpu",
        "memory used on a device, and that of the job",
        (
            Threshold("percent", 5, OWN),
            Threshold("bytes", 1e9, OWN),
            Threshold("intervals", 3, OWN),
        ),
        "the processes on the device are not known",
        NOTE,
        "Others held up to 11 GB of GPU 0 (at 1:02:03).",
        "Times and utilization are not those of the job alone.",
        "the driver's list of processes shows only the job",
        judge_others,
    ),
)

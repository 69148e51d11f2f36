"""The content of the state file: the structures of state.h, in the same order.

Whoever changes one changes the other and raises LAYOUT_VERSION in both. Knows shapes, no meaning.
"""

from __future__ import annotations

import ctypes
from ctypes import c_char, c_double, c_int32, c_int64, c_uint32, c_uint64

LAYOUT_VERSION = 5
DEVICE_LIMIT = 16
INSTANCE_LIMIT = 48
PROCESS_LIMIT = 2048
ACCOUNTING_LIMIT = 512
RULE_LIMIT = 64
ABSENT_LIMIT = 32
CALL_LIMIT = 256
CLIENT_LIMIT = 256
NAME_BYTES = 64
SAMPLE_KINDS = 3
GPM_METRICS = 9
LINK_COUNTERS = 4
HANGS = 2**32 - 1
CRASHES = 2**32 - 2
FAULT_LIMIT = 128
SAMPLE_LIMIT = 120
PROCESS_SAMPLE_LIMIT = 72


class PowerSegment(ctypes.Structure):
    """A period of constant power; the energy counter is its integral."""

    _fields_ = [
        ("energy_start_mj", c_uint64),
        ("since_us", c_uint64),
        ("power_mw", c_uint32),
        ("integrates", c_uint32),
    ]


class ActivitySegment(ctypes.Structure):
    """A period in which the units of a GPU are equally active."""

    _fields_ = [
        ("since_us", c_uint64),
        ("percent_us", c_double * GPM_METRICS),
        ("percent", c_double * GPM_METRICS),
    ]


class Sample(ctypes.Structure):
    """One value of a device's sample buffer."""

    _fields_ = [("timestamp_us", c_uint64), ("value", c_uint64)]


class SampleRing(ctypes.Structure):
    """The newest samples of one kind."""

    _fields_ = [("written", c_uint64), ("entries", Sample * SAMPLE_LIMIT)]


class ProcessSample(ctypes.Structure):
    """A process's utilization of a device in one sampling period."""

    _fields_ = [
        ("timestamp_us", c_uint64),
        ("pid", c_uint32),
        ("sm_percent", c_uint32),
        ("memory_percent", c_uint32),
        ("encoder_percent", c_uint32),
        ("decoder_percent", c_uint32),
    ]


class ProcessSampleRing(ctypes.Structure):
    """The newest process samples of a device."""

    _fields_ = [("written", c_uint64), ("entries", ProcessSample * PROCESS_SAMPLE_LIMIT)]


class Fault(ctypes.Structure):
    """Something that a device reports to whoever waits for it."""

    _fields_ = [("type", c_uint64), ("data", c_uint64), ("gpu_instance", c_uint32)]


class FaultRing(ctypes.Structure):
    """The newest faults of a device."""

    _fields_ = [("written", c_uint64), ("entries", Fault * FAULT_LIMIT)]


class Device(ctypes.Structure):
    """A GPU, or a MIG instance of one."""

    _fields_ = [
        ("uuid", c_char * 96),
        ("name", c_char * 96),
        ("pci_bus_id", c_char * 32),
        ("memory_total_bytes", c_uint64),
        ("memory_reserved_bytes", c_uint64),
        ("extra_used_bytes", c_uint64),
        ("throttle_reasons", c_uint64),
        ("energy_seen_mj", c_uint64),
        ("power", PowerSegment * 2),
        ("activity", ActivitySegment * 2),
        ("traffic_since_us", c_uint64),
        ("counted_bytes", c_uint64),
        ("has_short_counters", c_uint64),
        ("bytes_per_us", c_double * LINK_COUNTERS),
        ("activity_changes", c_uint32),
        ("has_gpm", c_uint32),
        ("power_changes", c_uint32),
        ("power_limit_mw", c_uint32),
        ("gpu_percent", c_int32),
        ("memory_percent", c_int32),
        ("encoder_percent", c_uint32),
        ("decoder_percent", c_uint32),
        ("temperature_celsius", c_uint32),
        ("fan_percent", c_uint32),
        ("clocks_mhz", c_uint32 * 4),
        ("max_clocks_mhz", c_uint32 * 4),
        ("lost", c_uint32),
        ("denied", c_uint32),
        ("accounting", c_uint32),
        ("mig_mode", c_int32),
        ("parent", c_int32),
        ("gpu_instance", c_uint32),
        ("compute_instance", c_uint32),
        ("samples", SampleRing * SAMPLE_KINDS),
        ("process_samples", ProcessSampleRing),
        ("faults", FaultRing),
        ("memory_errors", c_uint64 * 2),
    ]


class Process(ctypes.Structure):
    """A process in one of a device's lists; pid is written last, zero marks a free entry."""

    _fields_ = [
        ("pid", c_uint32),
        ("device", c_uint32),
        ("kind", c_uint32),
        ("foreign", c_uint32),
        ("start_ticks", c_uint64),
        ("used_bytes", c_uint64),
        ("sm_percent", c_uint32),
        ("memory_percent", c_uint32),
        ("lingers", c_uint32),
    ]


class Accounting(ctypes.Structure):
    """The driver's accounting of a process; pid is written last, zero marks a free entry."""

    _fields_ = [
        ("start_ticks", c_uint64),
        ("max_used_bytes", c_uint64),
        ("active_ms", c_uint64),
        ("start_us", c_uint64),
        ("device", c_uint32),
        ("gpu_percent", c_uint32),
        ("memory_percent", c_uint32),
        ("pid", c_uint32),
    ]


class Rule(ctypes.Structure):
    """An injected error or latency; active is written last."""

    _fields_ = [
        ("function", c_char * NAME_BYTES),
        ("device", c_int32),
        ("code", c_int32),
        ("after", c_int64),
        ("times", c_int64),
        ("matches", c_uint64),
        ("latency_ms", c_uint32),
        ("active", c_uint32),
    ]


class CallCount(ctypes.Structure):
    """How often one function was called, by all clients together."""

    _fields_ = [("hash", c_uint64), ("calls", c_uint64), ("function", c_char * NAME_BYTES)]


class State(ctypes.Structure):
    """The whole file."""

    _fields_ = [
        ("layout_version", c_uint32),
        ("layout_bytes", c_uint32),
        ("driver_version", c_char * 80),
        ("v3_entry_bytes", c_uint32),
        ("pid_offset", c_int32),
        ("hides_foreign", c_uint32),
        ("keeps_every_sample", c_uint32),
        ("device_count", c_uint32),
        ("instance_count", c_uint32),
        ("client_count", c_uint32),
        ("gpm_samples", c_uint32),
        ("event_sets", c_uint32),
        ("driver_loads", c_uint32),
        ("clients", c_uint32 * CLIENT_LIMIT),
        ("absent", (c_char * NAME_BYTES) * ABSENT_LIMIT),
        ("devices", Device * (DEVICE_LIMIT + INSTANCE_LIMIT)),
        ("processes", Process * PROCESS_LIMIT),
        ("accounting", Accounting * ACCOUNTING_LIMIT),
        ("rules", Rule * RULE_LIMIT),
        ("calls", CallCount * CALL_LIMIT),
    ]

/*
 * The simulated hardware: the content of the state file, as the library reads it.
 *
 * layout.py declares the same structures in the same order. Whoever changes one changes the other and
 * raises LAYOUT_VERSION in both; version and size are compared when the file is opened.
 *
 * Readers and writers share no lock, because a workload may be killed at any instruction. Every list is
 * therefore published by one last store: a count, a pid, an "active" flag.
 */
#ifndef STATE_H
#define STATE_H

#include <stdint.h>

#define HANGS UINT32_MAX
#define CRASHES (UINT32_MAX - 1)

enum {
    LAYOUT_VERSION = 5,
    DEVICE_LIMIT = 16,    /* whole GPUs: their place in the table is their NVML index */
    INSTANCE_LIMIT = 48,  /* MIG instances, behind the whole GPUs in the same table */
    PROCESS_LIMIT = 2048,
    ACCOUNTING_LIMIT = 512,
    RULE_LIMIT = 64,
    ABSENT_LIMIT = 32,
    CALL_LIMIT = 256,
    CLIENT_LIMIT = 256,
    NAME_BYTES = 64,
    SAMPLE_KINDS = 3,         /* power, gpu utilization, memory utilization: NVML's own numbers 0, 1, 2 */
    GPM_METRICS = 9,          /* those of NVML's that are simulated */
    LINK_COUNTERS = 4,
    FAULT_LIMIT = 128,
    SAMPLE_LIMIT = 120,
    PROCESS_SAMPLE_LIMIT = 72 /* what the kernel driver keeps: about ten seconds */
};

struct power_segment {
    uint64_t energy_start_mj;
    uint64_t since_us;
    uint32_t power_mw;
    uint32_t integrates;
};

/* A period in which the units of a GPU are equally active. */
struct activity_segment {
    uint64_t since_us;
    double percent_us[GPM_METRICS]; /* the integrals at its start */
    double percent[GPM_METRICS];    /* negative: this metric is not supported */
};

struct sample {
    uint64_t timestamp_us;
    uint64_t value;
};

struct sample_ring {
    uint64_t written;
    struct sample entries[SAMPLE_LIMIT];
};

struct process_sample {
    uint64_t timestamp_us;
    uint32_t pid;
    uint32_t sm_percent;
    uint32_t memory_percent;
    uint32_t encoder_percent;
    uint32_t decoder_percent;
};

struct process_sample_ring {
    uint64_t written;
    struct process_sample entries[PROCESS_SAMPLE_LIMIT];
};

struct fault {
    uint64_t type; /* as NVML numbers its events */
    uint64_t data;
    uint32_t gpu_instance;
};

struct fault_ring {
    uint64_t written;
    struct fault entries[FAULT_LIMIT];
};

struct device {
    char uuid[96];
    char name[96];
    char pci_bus_id[32];
    uint64_t memory_total_bytes;
    uint64_t memory_reserved_bytes;
    uint64_t extra_used_bytes;
    uint64_t throttle_reasons;
    uint64_t energy_seen_mj;
    struct power_segment power[2]; /* the last change counted is in the place of its parity */
    struct activity_segment activity[2]; /* as for power */
    uint64_t traffic_since_us;             /* 0: it does not count what goes through its links */
    uint64_t counted_bytes;                /* through each link before that */
    uint64_t has_short_counters;           /* of 32 bits, for PCIe */
    double bytes_per_us[LINK_COUNTERS];    /* PCIe received and sent, NVLink received and sent; negative: not counted */
    uint32_t activity_changes;
    uint32_t has_gpm;
    uint32_t power_changes;
    uint32_t power_limit_mw;
    int32_t gpu_percent;    /* negative: derived from the processes */
    int32_t memory_percent; /* negative: derived from the processes */
    uint32_t encoder_percent;
    uint32_t decoder_percent;
    uint32_t temperature_celsius;
    uint32_t fan_percent;
    uint32_t clocks_mhz[4]; /* graphics, sm, memory, video */
    uint32_t max_clocks_mhz[4];
    uint32_t lost;
    uint32_t denied;
    uint32_t accounting;
    int32_t mig_mode; /* negative: a GPU that cannot do MIG */
    int32_t parent;   /* negative: a whole GPU */
    uint32_t gpu_instance;
    uint32_t compute_instance;
    struct sample_ring samples[SAMPLE_KINDS];
    struct process_sample_ring process_samples;
    struct fault_ring faults;
    uint64_t memory_errors[2]; /* corrected and uncorrected, besides those before */
};

struct process {
    uint32_t pid; /* written last; zero marks a free place */
    uint32_t device;
    uint32_t kind;
    uint32_t foreign; /* lives in another PID namespace: never looked up in /proc */
    uint64_t start_ticks;
    uint64_t used_bytes;
    uint32_t sm_percent;
    uint32_t memory_percent;
    uint32_t lingers; /* stays in the lists after its end */
};

struct accounting {
    uint64_t start_ticks;
    uint64_t max_used_bytes;
    uint64_t active_ms;
    uint64_t start_us;
    uint32_t device;
    uint32_t gpu_percent;
    uint32_t memory_percent;
    uint32_t pid; /* written last; zero marks a free place */
};

struct rule {
    char function[NAME_BYTES]; /* a shell pattern */
    int32_t device;
    int32_t code;
    int64_t after;
    int64_t times;
    uint64_t matches;
    uint32_t latency_ms; /* HANGS: until the rule is removed; CRASHES: as a bug in the driver */
    uint32_t active;     /* zero: free; each new rule has another number */
};

struct call_count {
    uint64_t hash;
    uint64_t calls;
    char function[NAME_BYTES];
};

struct state {
    uint32_t layout_version;
    uint32_t layout_bytes;
    char driver_version[80];
    uint32_t v3_entry_bytes; /* 24; drivers 535.43 to 535.86 wrote 32 */
    int32_t pid_offset;      /* how far the reported pids are from those of our own namespace */
    uint32_t hides_foreign;  /* newer drivers skip processes outside the caller's PID namespace */
    uint32_t keeps_every_sample; /* of process utilization; else the newest of each process */
    uint32_t device_count;
    uint32_t instance_count;
    uint32_t client_count;
    uint32_t gpm_samples; /* that clients hold */
    uint32_t event_sets;  /* the same */
    uint32_t driver_loads; /* how often the driver was loaded again */
    uint32_t clients[CLIENT_LIMIT];
    char absent[ABSENT_LIMIT][NAME_BYTES];
    struct device devices[DEVICE_LIMIT + INSTANCE_LIMIT];
    struct process processes[PROCESS_LIMIT];
    struct accounting accounting[ACCOUNTING_LIMIT];
    struct rule rules[RULE_LIMIT];
    struct call_count calls[CALL_LIMIT];
};

#endif

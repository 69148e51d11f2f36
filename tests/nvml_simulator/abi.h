/*
 * The part of NVML's binary interface the simulator speaks: return codes, structures, versions.
 */
#ifndef ABI_H
#define ABI_H

#include <stdint.h>

typedef enum {
    SUCCESS = 0,
    UNINITIALIZED = 1,
    INVALID_ARGUMENT = 2,
    NOT_SUPPORTED = 3,
    NO_PERMISSION = 4,
    NOT_FOUND = 6,
    INSUFFICIENT_SIZE = 7,
    DRIVER_NOT_LOADED = 9,
    TIMEOUT = 10,
    FUNCTION_NOT_FOUND = 13,
    GPU_IS_LOST = 15,
    VERSION_MISMATCH = 18,
    ARGUMENT_VERSION_MISMATCH = 25
} nvml_return;

typedef void *nvml_device;

enum { COMPUTE = 0, GRAPHICS = 1, MPS = 2, ANY_KIND = -1 };
enum { ANY_DEVICE = -1, NO_INSTANCE = -1, UNSIGNED_INT_VALUE = 1, UNSIGNED_LONG_LONG_VALUE = 3 };
enum { PROCESS_INFO_V1_BYTES = 16, PROCESS_INFO_V2_BYTES = 24 };
enum { HANG_STEP_MS = 20 };
enum { GPM_VERSION = 1, GPM_REFRESH_US = 100000 };
enum { PROCESS_SAMPLE_PROBE = 100, PROCESS_SAMPLE_PERIOD_US = 142857, MIG_INSTANCES_PER_GPU = 7 };

#define NOT_AVAILABLE UINT64_MAX

struct nvml_memory { uint64_t total, free, used; };
struct nvml_memory_v2 { uint32_t version; uint64_t total, reserved, free, used; };
struct nvml_utilization { uint32_t gpu, memory; };
struct nvml_temperature { uint32_t version, sensor; int32_t temperature; };

/* The longest layout there was; the shorter ones are its first 16 or 24 bytes. */
struct nvml_process_info {
    uint32_t pid;
    uint64_t used;
    uint32_t gpu_instance, compute_instance;
    uint64_t protected_used;
};

struct nvml_process_utilization {
    uint32_t pid;
    uint64_t timestamp_us;
    uint32_t sm, memory, encoder, decoder;
};

struct nvml_sample { uint64_t timestamp_us; union { double real; uint64_t integer; } value; };

struct nvml_pci_info {
    char bus_id_legacy[16];
    uint32_t domain, bus, device, device_id, subsystem_id;
    char bus_id[32];
};

struct nvml_accounting_stats {
    uint32_t gpu_percent, memory_percent;
    uint64_t max_used, time_ms, start_us;
    uint32_t is_running, unused[5];
};

struct nvml_pci_info_ext {
    uint32_t version, domain, bus, device, device_id, subsystem_id, base_class, sub_class;
    char bus_id[32];
};

struct nvml_fabric_info {
    uint32_t version;
    unsigned char cluster_uuid[16];
    uint32_t status, clique_id;
    unsigned char state;
    uint32_t health_mask;
};

struct nvml_violation { uint64_t reference_us, violation_ns; };
struct nvml_margin_temperature { uint32_t version; int32_t celsius; };

struct nvml_field_value {
    uint32_t field, scope;
    int64_t timestamp_us, latency_us;
    uint32_t value_type, code;
    union { double real; uint64_t integer; } value;
};

struct nvml_event_data { nvml_device device; uint64_t type, data; uint32_t gpu_instance, compute_instance; };

struct nvml_gpm_support { uint32_t version, is_supported; };

struct nvml_gpm_metric {
    uint32_t id, code;
    double value;
    const char *short_name, *long_name, *unit;
};

/* The caller's array is as long as its own version of NVML says; only the first `count` entries are filled. */
struct nvml_gpm_metrics {
    uint32_t version, count;
    struct gpm_sample *first, *second;
    struct nvml_gpm_metric metrics[];
};

#define MEMORY_V2_VERSION (sizeof(struct nvml_memory_v2) | 2U << 24)
#define TEMPERATURE_VERSION (sizeof(struct nvml_temperature) | 1U << 24)

_Static_assert(sizeof(struct nvml_memory_v2) == 40, "nvmlMemory_v2_t");
_Static_assert(sizeof(struct nvml_process_info) == 32, "nvmlProcessDetail_v1_t");
_Static_assert(sizeof(struct nvml_process_utilization) == 32, "nvmlProcessUtilizationSample_t");
_Static_assert(sizeof(struct nvml_sample) == 16, "nvmlSample_t");
_Static_assert(sizeof(struct nvml_pci_info) == 68, "nvmlPciInfo_t");
_Static_assert(sizeof(struct nvml_accounting_stats) == 56, "nvmlAccountingStats_t");
_Static_assert(sizeof(struct nvml_field_value) == 40, "nvmlFieldValue_t");
_Static_assert(sizeof(struct nvml_event_data) == 32, "nvmlEventData_t");
_Static_assert(sizeof(struct nvml_gpm_metric) == 40, "nvmlGpmMetric_t");
_Static_assert(sizeof(struct nvml_gpm_metrics) == 24, "nvmlGpmMetricsGet_t");

#endif

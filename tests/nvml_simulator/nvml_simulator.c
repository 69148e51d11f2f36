/*
 * A simulated NVIDIA driver library: libnvidia-ml.so.1 for machines without a GPU.
 *
 * The "hardware" is one memory-mapped file, named by NVML_SIMULATOR_STATE. Tests and fake workloads write
 * it (see state.h), this library reads it on every call, so a client polling it sees the hardware change.
 * The library itself writes only counters: calls, rule matches and clients.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <fnmatch.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "abi.h"
#include "state.h"

/* ---- attaching to the state, and the gate every call passes ------------------------------------------ */

static struct state *state;
static struct stat state_file;
static pthread_mutex_t initialisation = PTHREAD_MUTEX_INITIALIZER;
static unsigned references;
static pid_t owner_pid;
static bool was_asked_to_initialise;

static uint64_t now_us(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static nvml_return map_state(int file, const struct stat *found)
{
    if (found->st_size != (off_t)sizeof *state)
        return VERSION_MISMATCH;
    struct state *mapped = mmap(NULL, sizeof *state, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (mapped == MAP_FAILED)
        return DRIVER_NOT_LOADED;
    if (mapped->layout_version != LAYOUT_VERSION || mapped->layout_bytes != sizeof *state) {
        munmap(mapped, sizeof *state);
        return VERSION_MISMATCH;
    }
    /* The mapping before it is not released: another thread may still be inside a slow call. */
    state = mapped;
    state_file = *found;
    return SUCCESS;
}

static nvml_return attach(void)
{
    const char *path = getenv("NVML_SIMULATOR_STATE");
    int file = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    struct stat found;
    if (file < 0)
        return DRIVER_NOT_LOADED;
    nvml_return code = SUCCESS;
    if (fstat(file, &found) != 0)
        code = DRIVER_NOT_LOADED;
    else if (!state || found.st_ino != state_file.st_ino || found.st_dev != state_file.st_dev)
        code = map_state(file, &found);
    close(file);
    return code;
}

/* NVML's state does not survive fork(): a child has to initialise again. */
static bool is_initialised(void)
{
    return references > 0 && owner_pid == getpid();
}

/* Client processes share this table, so a place is claimed by compare-and-swap on the name's FNV-1a hash. */
static void count_call(const char *function)
{
    uint64_t hash = 14695981039346656037U;
    for (const char *letter = function; *letter; letter++)
        hash = (hash ^ (unsigned char)*letter) * 1099511628211U;
    for (unsigned step = 0; step < CALL_LIMIT; step++) {
        struct call_count *entry = &state->calls[(hash + step) % CALL_LIMIT];
        uint64_t present = 0;
        if (__atomic_compare_exchange_n(&entry->hash, &present, hash, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)
            || present == hash) {
            snprintf(entry->function, sizeof entry->function, "%s", function);
            __atomic_add_fetch(&entry->calls, 1, __ATOMIC_ACQ_REL);
            return;
        }
    }
}

static bool is_absent(const char *function)
{
    for (unsigned i = 0; i < ABSENT_LIMIT; i++)
        if (strcmp(state->absent[i], function) == 0)
            return true;
    return false;
}

/* A signal must not shorten an injected latency: tests rely on it as a lower bound. */
static void wait_ms(uint32_t milliseconds)
{
    struct timespec left = {milliseconds / 1000, (long)(milliseconds % 1000) * 1000000};
    while (nanosleep(&left, &left) != 0)
        ;
}

static void wait_for(const struct rule *rule)
{
    uint32_t number = __atomic_load_n(&rule->active, __ATOMIC_ACQUIRE);
    if (rule->latency_ms != HANGS)
        wait_ms(rule->latency_ms);
    while (rule->latency_ms == HANGS && __atomic_load_n(&rule->active, __ATOMIC_ACQUIRE) == number)
        wait_ms(HANG_STEP_MS);
}

static bool rule_applies(struct rule *rule, const char *function, int device)
{
    if (!__atomic_load_n(&rule->active, __ATOMIC_ACQUIRE) || fnmatch(rule->function, function, 0) != 0)
        return false;
    if (rule->device != ANY_DEVICE && rule->device != device)
        return false;
    int64_t earlier = (int64_t)__atomic_fetch_add(&rule->matches, 1, __ATOMIC_ACQ_REL);
    return earlier >= rule->after && (rule->times < 0 || earlier < rule->after + rule->times);
}

static nvml_return apply_rules(const char *function, int device)
{
    nvml_return code = SUCCESS;
    for (unsigned i = 0; i < RULE_LIMIT; i++) {
        if (!rule_applies(&state->rules[i], function, device))
            continue;
        wait_for(&state->rules[i]);
        if (code == SUCCESS)
            code = (nvml_return)state->rules[i].code;
    }
    return code;
}

/* Rules for "dlopen" apply while the library is loaded. */
__attribute__((constructor)) static void load(void)
{
    if (attach() == SUCCESS)
        apply_rules("dlopen", ANY_DEVICE);
}

static nvml_return enter(const char *function, int device)
{
    if (!is_initialised())
        return UNINITIALIZED;
    if (getenv("NVML_SIMULATOR_PRINTS"))
        dprintf(STDOUT_FILENO, "%s\n", function);
    count_call(function);
    return is_absent(function) ? FUNCTION_NOT_FOUND : apply_rules(function, device);
}

/* Handles are numbers, not addresses: a stale or invented one is recognised, never followed. */
static const uintptr_t FIRST_HANDLE = 0x6e766d6c;

static nvml_device handle_of(int index)
{
    return (nvml_device)(FIRST_HANDLE + (uintptr_t)index);
}

static int index_of(const struct device *device)
{
    return (int)(device - state->devices);
}

static int index_of_handle(nvml_device handle)
{
    uintptr_t index = (uintptr_t)handle - FIRST_HANDLE;
    bool is_gpu = index < state->device_count;
    bool is_instance = index >= DEVICE_LIMIT && index - DEVICE_LIMIT < state->instance_count;
    return is_gpu || is_instance ? (int)index : ANY_DEVICE;
}

static bool is_lost(const struct device *device)
{
    return device->lost || (device->parent >= 0 && state->devices[device->parent].lost);
}

static nvml_return enter_device(const char *function, nvml_device handle, struct device **device)
{
    int index = is_initialised() ? index_of_handle(handle) : ANY_DEVICE;
    nvml_return code = enter(function, index);
    if (code != SUCCESS)
        return code;
    if (index == ANY_DEVICE)
        return INVALID_ARGUMENT;
    *device = &state->devices[index];
    return is_lost(*device) ? GPU_IS_LOST : SUCCESS;
}

#define RETURN_UNLESS_SUCCESS(expression)   \
    do {                                    \
        nvml_return code_ = (expression);   \
        if (code_ != SUCCESS) return code_; \
    } while (0)

#define RETURN_IF(condition, code)     \
    do {                               \
        if (condition) return (code);  \
    } while (0)

#define ENTER() RETURN_UNLESS_SUCCESS(enter(__func__, ANY_DEVICE))

#define ENTER_DEVICE(handle)      \
    struct device *device = NULL; \
    RETURN_UNLESS_SUCCESS(enter_device(__func__, handle, &device))

/* MIG instances have memory and processes of their own; everything else belongs to the whole GPU. */
#define ENTER_WHOLE_GPU(handle) \
    ENTER_DEVICE(handle);       \
    RETURN_IF(device->parent >= 0, NOT_SUPPORTED)

/* ---- processes --------------------------------------------------------------------------------------- */

/*
 * The driver tears a context down when its process exits, reaped or not, so a zombie has no GPU memory.
 * The start time keeps a reused pid from inheriting the memory of the dead.
 */
static bool is_running(uint32_t pid, uint64_t start_ticks)
{
    char path[32], text[512];
    snprintf(path, sizeof path, "/proc/%u/stat", pid);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return false;
    ssize_t length = read(file, text, sizeof text - 1);
    close(file);
    text[length > 0 ? length : 0] = '\0';
    char *after_name = strrchr(text, ')'); /* the name itself may contain spaces and parentheses */
    char status;
    unsigned long long started;
    if (!after_name || sscanf(after_name + 1, " %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s"
                                              " %*s %*s %*s %llu", &status, &started) != 2)
        return false;
    return status != 'Z' && status != 'X' && started == start_ticks;
}

/* The GPU itself sees everything that runs in its MIG instances. */
static bool is_on_device(const struct process *process, const struct device *device)
{
    return (int)process->device == index_of(device)
        || state->devices[process->device].parent == index_of(device);
}

static unsigned find_processes(const struct device *device, int kind, struct process found[PROCESS_LIMIT])
{
    unsigned count = 0;
    for (unsigned i = 0; i < PROCESS_LIMIT; i++) {
        const uint32_t *place = &state->processes[i].pid;
        uint32_t pid = __atomic_load_n(place, __ATOMIC_ACQUIRE);
        if (pid == 0)
            continue;
        struct process copy = state->processes[i];
        if (__atomic_load_n(place, __ATOMIC_ACQUIRE) != pid) /* given to another process meanwhile */
            continue;
        if (!is_on_device(&copy, device) || (kind != ANY_KIND && (int)copy.kind != kind))
            continue;
        if (copy.foreign || copy.lingers || is_running(pid, copy.start_ticks))
            found[count++] = copy;
    }
    return count;
}

static bool is_same_context(const struct process *one, const struct process *other)
{
    return one->pid == other->pid && one->device == other->device;
}

/* One entry per process: each list it is in repeats its total, so kinds are never added up. */
static unsigned merge_kinds(struct process *processes, unsigned count)
{
    unsigned merged = 0;
    for (unsigned i = 0; i < count; i++) {
        struct process entry = processes[i];
        if (entry.used_bytes == NOT_AVAILABLE)
            entry.used_bytes = 0;
        unsigned same = 0;
        while (same < merged && !is_same_context(&processes[same], &entry))
            same++;
        struct process *target = &processes[same];
        if (same == merged) {
            *target = entry;
            merged++;
            continue;
        }
        if (target->used_bytes < entry.used_bytes)
            target->used_bytes = entry.used_bytes;
        if (target->sm_percent < entry.sm_percent)
            target->sm_percent = entry.sm_percent;
        if (target->memory_percent < entry.memory_percent)
            target->memory_percent = entry.memory_percent;
    }
    return merged;
}

static uint32_t reported_pid(const struct process *process)
{
    return process->foreign ? process->pid : process->pid + (uint32_t)state->pid_offset;
}

static nvml_return list_processes(const struct device *device, int kind, unsigned *count, void *infos,
                                  size_t entry_bytes)
{
    struct process found[PROCESS_LIMIT];
    unsigned running = 0, total = find_processes(device, kind, found);
    for (unsigned i = 0; i < total; i++)
        if (!(found[i].foreign && state->hides_foreign))
            found[running++] = found[i];
    RETURN_IF(!count || (*count > 0 && !infos), INVALID_ARGUMENT);
    unsigned capacity = *count;
    *count = running;
    RETURN_IF(capacity < running, INSUFFICIENT_SIZE);
    for (unsigned i = 0; i < running; i++) {
        const struct device *place = &state->devices[found[i].device];
        bool is_instance = place->parent >= 0;
        struct nvml_process_info info = {
            .pid = reported_pid(&found[i]),
            .used = found[i].used_bytes,
            .gpu_instance = is_instance ? place->gpu_instance : (uint32_t)NO_INSTANCE,
            .compute_instance = is_instance ? place->compute_instance : (uint32_t)NO_INSTANCE,
        };
        memcpy((char *)infos + i * entry_bytes, &info, entry_bytes);
    }
    return SUCCESS;
}

#define PROCESS_LIST(function, kind, entry_bytes)                               \
    nvml_return function(nvml_device handle, unsigned *count, void *infos)      \
    {                                                                           \
        ENTER_DEVICE(handle);                                                   \
        return list_processes(device, kind, count, infos, entry_bytes);         \
    }

PROCESS_LIST(nvmlDeviceGetComputeRunningProcesses, COMPUTE, PROCESS_INFO_V1_BYTES)
PROCESS_LIST(nvmlDeviceGetComputeRunningProcesses_v2, COMPUTE, PROCESS_INFO_V2_BYTES)
PROCESS_LIST(nvmlDeviceGetComputeRunningProcesses_v3, COMPUTE, state->v3_entry_bytes)
PROCESS_LIST(nvmlDeviceGetGraphicsRunningProcesses, GRAPHICS, PROCESS_INFO_V1_BYTES)
PROCESS_LIST(nvmlDeviceGetGraphicsRunningProcesses_v2, GRAPHICS, PROCESS_INFO_V2_BYTES)
PROCESS_LIST(nvmlDeviceGetGraphicsRunningProcesses_v3, GRAPHICS, state->v3_entry_bytes)
PROCESS_LIST(nvmlDeviceGetMPSComputeRunningProcesses, MPS, PROCESS_INFO_V1_BYTES)
PROCESS_LIST(nvmlDeviceGetMPSComputeRunningProcesses_v2, MPS, PROCESS_INFO_V2_BYTES)
PROCESS_LIST(nvmlDeviceGetMPSComputeRunningProcesses_v3, MPS, state->v3_entry_bytes)

/* Without explicit samples the running processes are "sampled" seven times a second, as the driver does. */
static unsigned derive_process_samples(const struct device *device, uint64_t last_seen_us,
                                       struct nvml_process_utilization *samples)
{
    struct process found[PROCESS_LIMIT];
    unsigned written = 0, count = merge_kinds(found, find_processes(device, ANY_KIND, found));
    uint64_t now = now_us(CLOCK_REALTIME), taken_us = now - now % PROCESS_SAMPLE_PERIOD_US;
    for (unsigned i = 0; i < count && taken_us > last_seen_us; i++)
        if (found[i].sm_percent || found[i].memory_percent)
            samples[written++] = (struct nvml_process_utilization){
                reported_pid(&found[i]), taken_us, found[i].sm_percent, found[i].memory_percent, 0, 0};
    return written;
}

/* All samples, or the newest of each pid; pids of dead processes stay until the ring has turned. */
static unsigned recent_process_samples(const struct device *device, uint64_t last_seen_us,
                                       struct nvml_process_utilization *samples)
{
    const struct process_sample_ring *ring = &device->process_samples;
    uint64_t end = __atomic_load_n(&ring->written, __ATOMIC_ACQUIRE);
    unsigned written = 0;
    for (uint64_t i = end > PROCESS_SAMPLE_LIMIT ? end - PROCESS_SAMPLE_LIMIT : 0; i < end; i++) {
        const struct process_sample *entry = &ring->entries[i % PROCESS_SAMPLE_LIMIT];
        if (entry->timestamp_us <= last_seen_us)
            continue;
        unsigned place = state->keeps_every_sample ? written : 0;
        while (place < written && samples[place].pid != entry->pid)
            place++;
        samples[place] = (struct nvml_process_utilization){
            entry->pid, entry->timestamp_us, entry->sm_percent, entry->memory_percent,
            entry->encoder_percent, entry->decoder_percent};
        written += place == written;
    }
    return written;
}

nvml_return nvmlDeviceGetProcessUtilization(nvml_device handle, struct nvml_process_utilization *samples,
                                            unsigned *count, unsigned long long last_seen_us)
{
    ENTER_WHOLE_GPU(handle);
    RETURN_IF(device->mig_mode > 0, NOT_SUPPORTED);
    RETURN_IF(!count, INVALID_ARGUMENT);
    if (!samples) {
        *count = PROCESS_SAMPLE_PROBE; /* real drivers answer a constant, not the number there is */
        return INSUFFICIENT_SIZE;
    }
    struct nvml_process_utilization recent[PROCESS_LIMIT];
    unsigned capacity = *count;
    *count = device->process_samples.written > 0
        ? recent_process_samples(device, last_seen_us, recent)
        : derive_process_samples(device, last_seen_us, recent);
    RETURN_IF(*count == 0, NOT_FOUND);
    RETURN_IF(*count > capacity, INSUFFICIENT_SIZE);
    memcpy(samples, recent, *count * sizeof *recent);
    return SUCCESS;
}

/* ---- memory, utilization, samples -------------------------------------------------------------------- */

static uint64_t used_bytes(const struct device *device)
{
    struct process found[PROCESS_LIMIT];
    unsigned count = merge_kinds(found, find_processes(device, ANY_KIND, found));
    uint64_t used = device->extra_used_bytes;
    for (unsigned i = 0; i < count; i++)
        used += found[i].used_bytes;
    return used;
}

static uint64_t free_bytes(const struct device *device, uint64_t used)
{
    uint64_t taken = used + device->memory_reserved_bytes;
    return taken < device->memory_total_bytes ? device->memory_total_bytes - taken : 0;
}

/* The old call counts the reserved memory as used; the new one reports it apart. */
nvml_return nvmlDeviceGetMemoryInfo(nvml_device handle, struct nvml_memory *memory)
{
    ENTER_DEVICE(handle);
    RETURN_IF(!memory, INVALID_ARGUMENT);
    uint64_t used = used_bytes(device);
    *memory = (struct nvml_memory){
        device->memory_total_bytes, free_bytes(device, used), used + device->memory_reserved_bytes};
    return SUCCESS;
}

nvml_return nvmlDeviceGetMemoryInfo_v2(nvml_device handle, struct nvml_memory_v2 *memory)
{
    ENTER_DEVICE(handle);
    RETURN_IF(!memory, INVALID_ARGUMENT);
    RETURN_IF(memory->version != MEMORY_V2_VERSION, ARGUMENT_VERSION_MISMATCH);
    uint64_t used = used_bytes(device);
    *memory = (struct nvml_memory_v2){memory->version, device->memory_total_bytes,
        device->memory_reserved_bytes, free_bytes(device, used), used};
    return SUCCESS;
}

nvml_return nvmlDeviceGetUtilizationRates(nvml_device handle, struct nvml_utilization *utilization)
{
    ENTER_WHOLE_GPU(handle);
    RETURN_IF(device->mig_mode > 0, NOT_SUPPORTED);
    RETURN_IF(!utilization, INVALID_ARGUMENT);
    struct process found[PROCESS_LIMIT];
    unsigned count = merge_kinds(found, find_processes(device, ANY_KIND, found));
    uint32_t gpu = 0, memory = 0;
    for (unsigned i = 0; i < count; i++) {
        gpu += found[i].sm_percent;
        memory += found[i].memory_percent;
    }
    utilization->gpu = device->gpu_percent >= 0 ? (uint32_t)device->gpu_percent : gpu < 100 ? gpu : 100;
    utilization->memory = device->memory_percent >= 0 ? (uint32_t)device->memory_percent
                                                      : memory < 100 ? memory : 100;
    return SUCCESS;
}

nvml_return nvmlDeviceGetSamples(nvml_device handle, unsigned kind, unsigned long long last_seen_us,
                                 unsigned *value_type, unsigned *count, struct nvml_sample *samples)
{
    ENTER_WHOLE_GPU(handle);
    RETURN_IF(!count || !value_type || (samples && *count == 0), INVALID_ARGUMENT);
    RETURN_IF(kind >= SAMPLE_KINDS || (device->mig_mode > 0 && kind > 0), NOT_SUPPORTED);
    const struct sample_ring *ring = &device->samples[kind];
    uint64_t end = __atomic_load_n(&ring->written, __ATOMIC_ACQUIRE);
    unsigned newer = 0;
    for (uint64_t i = end > SAMPLE_LIMIT ? end - SAMPLE_LIMIT : 0; i < end; i++) {
        const struct sample *entry = &ring->entries[i % SAMPLE_LIMIT];
        if (entry->timestamp_us <= last_seen_us || (samples && newer == *count))
            continue;
        if (samples)
            samples[newer] = (struct nvml_sample){entry->timestamp_us, {.integer = entry->value}};
        newer++;
    }
    *value_type = UNSIGNED_INT_VALUE;
    *count = newer;
    return newer ? SUCCESS : NOT_FOUND;
}

/* ---- power, temperature, clocks: one number per call ------------------------------------------------- */

/* The writer fills the idle place, so a copy is torn only if another change was counted meanwhile. */
static struct power_segment power_of(const struct device *device)
{
    struct power_segment copy;
    uint32_t change;
    do {
        change = __atomic_load_n(&device->power_changes, __ATOMIC_ACQUIRE);
        copy = device->power[change & 1];
    } while (__atomic_load_n(&device->power_changes, __ATOMIC_ACQUIRE) != change);
    return copy;
}

static uint64_t energy_mj(struct device *device)
{
    struct power_segment segment = power_of(device);
    if (!segment.integrates)
        return segment.energy_start_mj;
    uint64_t elapsed_us = now_us(CLOCK_MONOTONIC) - segment.since_us;
    uint64_t energy = segment.energy_start_mj + segment.power_mw * elapsed_us / 1000000;
    /* A change of power reaches readers a moment late, but the counter of a GPU never goes back. */
    uint64_t seen = __atomic_load_n(&device->energy_seen_mj, __ATOMIC_ACQUIRE);
    while (seen < energy && !__atomic_compare_exchange_n(&device->energy_seen_mj, &seen, energy, false,
                                                         __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        ;
    return seen > energy ? seen : energy;
}

#define DEVICE_NUMBER(function, type, expression)                  \
    nvml_return function(nvml_device handle, type *number)         \
    {                                                              \
        ENTER_WHOLE_GPU(handle);                                   \
        RETURN_IF(!number, INVALID_ARGUMENT);                      \
        *number = (expression);                                    \
        return SUCCESS;                                            \
    }

DEVICE_NUMBER(nvmlDeviceGetTotalEnergyConsumption, unsigned long long, energy_mj(device))
DEVICE_NUMBER(nvmlDeviceGetPowerUsage, unsigned, power_of(device).power_mw)
DEVICE_NUMBER(nvmlDeviceGetEnforcedPowerLimit, unsigned, device->power_limit_mw)
DEVICE_NUMBER(nvmlDeviceGetPowerManagementLimit, unsigned, device->power_limit_mw)
DEVICE_NUMBER(nvmlDeviceGetFanSpeed, unsigned, device->fan_percent)
DEVICE_NUMBER(nvmlDeviceGetCurrentClocksThrottleReasons, unsigned long long, device->throttle_reasons)
DEVICE_NUMBER(nvmlDeviceGetCurrentClocksEventReasons, unsigned long long, device->throttle_reasons)
DEVICE_NUMBER(nvmlDeviceGetIndex, unsigned, (unsigned)index_of(device))
DEVICE_NUMBER(nvmlDeviceGetMinorNumber, unsigned, (unsigned)index_of(device))
DEVICE_NUMBER(nvmlDeviceGetPerformanceState, unsigned, 0)
DEVICE_NUMBER(nvmlDeviceGetPersistenceMode, unsigned, 1)
DEVICE_NUMBER(nvmlDeviceGetComputeMode, unsigned, 0)
DEVICE_NUMBER(nvmlDeviceGetDisplayActive, unsigned, 0)
DEVICE_NUMBER(nvmlDeviceGetDisplayMode, unsigned, 0)

nvml_return nvmlDeviceGetTemperature(nvml_device handle, unsigned sensor, unsigned *celsius)
{
    ENTER_WHOLE_GPU(handle);
    RETURN_IF(sensor != 0 || !celsius, INVALID_ARGUMENT);
    *celsius = device->temperature_celsius;
    return SUCCESS;
}

nvml_return nvmlDeviceGetTemperatureThreshold(nvml_device handle, unsigned threshold, unsigned *celsius)
{
    ENTER_WHOLE_GPU(handle);
    RETURN_IF(threshold > 1 || !celsius, INVALID_ARGUMENT);
    *celsius = threshold == 0 ? 95 : 92; /* shutdown, slowdown */
    return SUCCESS;
}

nvml_return nvmlDeviceGetTemperatureV(nvml_device handle, struct nvml_temperature *reading)
{
    ENTER_WHOLE_GPU(handle);
    RETURN_IF(!reading || reading->sensor != 0, INVALID_ARGUMENT);
    RETURN_IF(reading->version != TEMPERATURE_VERSION, ARGUMENT_VERSION_MISMATCH);
    reading->temperature = (int32_t)device->temperature_celsius;
    return SUCCESS;
}

#define VIDEO_ENGINE(function, percent)                                                      \
    nvml_return function(nvml_device handle, unsigned *utilization, unsigned *period_us)     \
    {                                                                                        \
        ENTER_WHOLE_GPU(handle);                                                             \
        RETURN_IF(device->mig_mode > 0, NOT_SUPPORTED);                                      \
        RETURN_IF(!utilization || !period_us, INVALID_ARGUMENT);                             \
        *utilization = (percent);                                                            \
        *period_us = 167000;                                                                 \
        return SUCCESS;                                                                      \
    }

VIDEO_ENGINE(nvmlDeviceGetEncoderUtilization, device->encoder_percent)
VIDEO_ENGINE(nvmlDeviceGetDecoderUtilization, device->decoder_percent)

#define CLOCK(function, table)                                                        \
    nvml_return function(nvml_device handle, unsigned type, unsigned *mhz)            \
    {                                                                                 \
        ENTER_WHOLE_GPU(handle);                                                      \
        RETURN_IF(type >= sizeof table / sizeof *table || !mhz, INVALID_ARGUMENT);    \
        *mhz = table[type];                                                           \
        return SUCCESS;                                                               \
    }

CLOCK(nvmlDeviceGetClockInfo, device->clocks_mhz)
CLOCK(nvmlDeviceGetMaxClockInfo, device->max_clocks_mhz)

/* ---- names and handles ------------------------------------------------------------------------------- */

static nvml_return copy_text(const char *source, char *target, unsigned capacity)
{
    RETURN_IF(!target, INVALID_ARGUMENT);
    RETURN_IF(strlen(source) >= capacity, INSUFFICIENT_SIZE);
    strcpy(target, source);
    return SUCCESS;
}

nvml_return nvmlDeviceGetName(nvml_device handle, char *name, unsigned capacity)
{
    ENTER_DEVICE(handle);
    return copy_text(device->name, name, capacity);
}

nvml_return nvmlDeviceGetUUID(nvml_device handle, char *uuid, unsigned capacity)
{
    ENTER_DEVICE(handle);
    return copy_text(device->uuid, uuid, capacity);
}

static bool parse_bus_id(const char *text, struct nvml_pci_info *pci)
{
    return sscanf(text, "%x:%x:%x", &pci->domain, &pci->bus, &pci->device) == 3;
}

nvml_return nvmlDeviceGetPciInfo_v3(nvml_device handle, struct nvml_pci_info *pci)
{
    ENTER_WHOLE_GPU(handle);
    RETURN_IF(!pci, INVALID_ARGUMENT);
    *pci = (struct nvml_pci_info){.device_id = 0x20b010de};
    parse_bus_id(device->pci_bus_id, pci);
    memcpy(pci->bus_id, device->pci_bus_id, sizeof pci->bus_id - 1);
    snprintf(pci->bus_id_legacy, sizeof pci->bus_id_legacy, "%04x:%02x:%02x.0",
             pci->domain & 0xffff, pci->bus & 0xff, pci->device & 0xff);
    return SUCCESS;
}

static nvml_return give_handle(int index, nvml_device *handle)
{
    RETURN_IF(state->devices[index].denied, NO_PERMISSION);
    RETURN_IF(is_lost(&state->devices[index]), GPU_IS_LOST);
    *handle = handle_of(index);
    return SUCCESS;
}

nvml_return nvmlDeviceGetCount_v2(unsigned *count)
{
    ENTER();
    RETURN_IF(!count, INVALID_ARGUMENT);
    *count = state->device_count; /* also those that may not be opened */
    return SUCCESS;
}

nvml_return nvmlDeviceGetHandleByIndex_v2(unsigned index, nvml_device *handle)
{
    RETURN_UNLESS_SUCCESS(enter(__func__, (int)index));
    RETURN_IF(index >= state->device_count || !handle, INVALID_ARGUMENT);
    return give_handle((int)index, handle);
}

static int find_uuid(const char *uuid)
{
    for (int i = 0; uuid && i < DEVICE_LIMIT + INSTANCE_LIMIT; i++)
        if (index_of_handle(handle_of(i)) == i && strcmp(state->devices[i].uuid, uuid) == 0)
            return i;
    return ANY_DEVICE;
}

/* Clients write the domain with four or eight digits, so numbers are compared. */
static int find_bus_id(const char *bus_id)
{
    struct nvml_pci_info wanted, found;
    for (int i = 0; bus_id && parse_bus_id(bus_id, &wanted) && i < (int)state->device_count; i++)
        if (parse_bus_id(state->devices[i].pci_bus_id, &found) && found.domain == wanted.domain
            && found.bus == wanted.bus && found.device == wanted.device)
            return i;
    return ANY_DEVICE;
}

#define HANDLE_BY(function, find)                                          \
    nvml_return function(const char *text, nvml_device *handle)            \
    {                                                                      \
        int index = is_initialised() ? find(text) : ANY_DEVICE;            \
        RETURN_UNLESS_SUCCESS(enter(__func__, index));                     \
        RETURN_IF(!text || !handle, INVALID_ARGUMENT);                     \
        return index == ANY_DEVICE ? NOT_FOUND : give_handle(index, handle); \
    }

HANDLE_BY(nvmlDeviceGetHandleByUUID, find_uuid)
HANDLE_BY(nvmlDeviceGetHandleByPciBusId_v2, find_bus_id)

/* ---- MIG --------------------------------------------------------------------------------------------- */

nvml_return nvmlDeviceGetMigMode(nvml_device handle, unsigned *current, unsigned *pending)
{
    ENTER_WHOLE_GPU(handle);
    RETURN_IF(!current || !pending, INVALID_ARGUMENT);
    RETURN_IF(device->mig_mode < 0, NOT_SUPPORTED);
    *current = *pending = (unsigned)device->mig_mode;
    return SUCCESS;
}

DEVICE_NUMBER(nvmlDeviceGetMaxMigDeviceCount, unsigned, device->mig_mode > 0 ? MIG_INSTANCES_PER_GPU : 0)

nvml_return nvmlDeviceGetMigDeviceHandleByIndex(nvml_device handle, unsigned index, nvml_device *instance)
{
    ENTER_WHOLE_GPU(handle);
    RETURN_IF(!instance, INVALID_ARGUMENT);
    RETURN_IF(device->mig_mode <= 0, NOT_SUPPORTED);
    for (int i = DEVICE_LIMIT; i < DEVICE_LIMIT + (int)state->instance_count; i++)
        if (state->devices[i].parent == index_of(device) && index-- == 0)
            return give_handle(i, instance);
    return NOT_FOUND;
}

nvml_return nvmlDeviceIsMigDeviceHandle(nvml_device handle, unsigned *is_instance)
{
    ENTER_DEVICE(handle);
    RETURN_IF(!is_instance, INVALID_ARGUMENT);
    *is_instance = device->parent >= 0;
    return SUCCESS;
}

#define INSTANCE_VALUE(function, type, expression)               \
    nvml_return function(nvml_device handle, type *value)        \
    {                                                            \
        ENTER_DEVICE(handle);                                    \
        RETURN_IF(!value, INVALID_ARGUMENT);                     \
        RETURN_IF(device->parent < 0, NOT_SUPPORTED);            \
        *value = (expression);                                   \
        return SUCCESS;                                          \
    }

INSTANCE_VALUE(nvmlDeviceGetGpuInstanceId, unsigned, device->gpu_instance)
INSTANCE_VALUE(nvmlDeviceGetComputeInstanceId, unsigned, device->compute_instance)
INSTANCE_VALUE(nvmlDeviceGetDeviceHandleFromMigDeviceHandle, nvml_device, handle_of(device->parent))

/* ---- accounting -------------------------------------------------------------------------------------- */

DEVICE_NUMBER(nvmlDeviceGetAccountingMode, unsigned, device->accounting)
DEVICE_NUMBER(nvmlDeviceGetAccountingBufferSize, unsigned, ACCOUNTING_LIMIT)

static bool is_record_of(const struct accounting *record, const struct device *device)
{
    return __atomic_load_n(&record->pid, __ATOMIC_ACQUIRE) != 0 && (int)record->device == index_of(device);
}

nvml_return nvmlDeviceGetAccountingPids(nvml_device handle, unsigned *count, unsigned *pids)
{
    ENTER_WHOLE_GPU(handle);
    RETURN_IF(!count || (*count > 0 && !pids), INVALID_ARGUMENT);
    RETURN_IF(!device->accounting, NOT_SUPPORTED);
    unsigned known = 0, capacity = *count;
    for (unsigned i = 0; i < ACCOUNTING_LIMIT; i++) {
        if (!is_record_of(&state->accounting[i], device))
            continue;
        if (known < capacity)
            pids[known] = state->accounting[i].pid + (unsigned)state->pid_offset;
        known++;
    }
    *count = known;
    return known > capacity ? INSUFFICIENT_SIZE : SUCCESS;
}

nvml_return nvmlDeviceGetAccountingStats(nvml_device handle, unsigned pid, struct nvml_accounting_stats *stats)
{
    ENTER_WHOLE_GPU(handle);
    RETURN_IF(!stats, INVALID_ARGUMENT);
    RETURN_IF(!device->accounting, NOT_SUPPORTED);
    for (unsigned i = 0; i < ACCOUNTING_LIMIT; i++) {
        const struct accounting *record = &state->accounting[i];
        if (!is_record_of(record, device) || record->pid + (unsigned)state->pid_offset != pid)
            continue;
        bool runs = is_running(record->pid, record->start_ticks);
        *stats = (struct nvml_accounting_stats){record->gpu_percent, record->memory_percent,
            record->max_used_bytes, runs ? 0 : record->active_ms, record->start_us, runs, {0}};
        return SUCCESS;
    }
    return NOT_FOUND;
}

/* ---- questions this GPU cannot answer: clients look the symbols up and expect NOT_SUPPORTED ----------- */

#define UNUSED __attribute__((unused))

#define UNSUPPORTED(function, ...)                               \
    nvml_return function(nvml_device handle, __VA_ARGS__)        \
    {                                                            \
        ENTER_DEVICE(handle);                                    \
        return NOT_SUPPORTED;                                    \
    }

UNSUPPORTED(nvmlDeviceGetConfComputeMemSizeInfo, UNUSED void *sizes)
UNSUPPORTED(nvmlDeviceGetRunningProcessDetailList, UNUSED void *list)
UNSUPPORTED(nvmlDeviceGetDriverModel, UNUSED unsigned *current, UNUSED unsigned *pending)
UNSUPPORTED(nvmlDeviceGetTotalEccErrors, UNUSED unsigned error, UNUSED unsigned counter, UNUSED void *count)

/* ---- the library as a whole -------------------------------------------------------------------------- */

static nvml_return initialise(const char *function)
{
    pthread_mutex_lock(&initialisation);
    was_asked_to_initialise = true;
    if (!is_initialised())
        references = 0; /* also in a forked child, which inherits the parent's number */
    nvml_return code = references > 0 ? SUCCESS : attach();
    if (code == SUCCESS) {
        count_call(function);
        code = apply_rules(function, ANY_DEVICE);
    }
    if (code == SUCCESS && references++ == 0) {
        owner_pid = getpid();
        uint32_t place = __atomic_fetch_add(&state->client_count, 1, __ATOMIC_ACQ_REL);
        state->clients[place % CLIENT_LIMIT] = (uint32_t)owner_pid;
    }
    pthread_mutex_unlock(&initialisation);
    return code;
}

nvml_return nvmlInit(void) { return initialise(__func__); }
nvml_return nvmlInit_v2(void) { return initialise(__func__); }

nvml_return nvmlInitWithFlags(unsigned flags)
{
    (void)flags;
    return initialise(__func__);
}

/* As the real library: one shutdown too many is no error, one without any attempt to initialise is. */
nvml_return nvmlShutdown(void)
{
    pthread_mutex_lock(&initialisation);
    bool is_forked_child = references > 0 && owner_pid != getpid();
    nvml_return code = was_asked_to_initialise && !is_forked_child ? SUCCESS : UNINITIALIZED;
    if (is_initialised()) {
        code = enter(__func__, ANY_DEVICE);
        references -= code == SUCCESS;
    }
    pthread_mutex_unlock(&initialisation);
    return code;
}

nvml_return nvmlSystemGetDriverVersion(char *version, unsigned capacity)
{
    ENTER();
    return copy_text(state->driver_version, version, capacity);
}

nvml_return nvmlSystemGetNVMLVersion(char *version, unsigned capacity)
{
    ENTER();
    char text[sizeof state->driver_version + sizeof "12."];
    snprintf(text, sizeof text, "12.%s", state->driver_version);
    return copy_text(text, version, capacity);
}

#define CUDA_VERSION(function)           \
    nvml_return function(int *version)   \
    {                                    \
        ENTER();                         \
        RETURN_IF(!version, INVALID_ARGUMENT); \
        *version = 12040;                \
        return SUCCESS;                  \
    }

CUDA_VERSION(nvmlSystemGetCudaDriverVersion)
CUDA_VERSION(nvmlSystemGetCudaDriverVersion_v2)

nvml_return nvmlSystemGetProcessName(unsigned pid, char *name, unsigned capacity)
{
    ENTER();
    RETURN_IF(!name || capacity == 0, INVALID_ARGUMENT);
    char path[32];
    snprintf(path, sizeof path, "/proc/%u/cmdline", pid);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    RETURN_IF(file < 0, NOT_FOUND);
    ssize_t length = read(file, name, capacity - 1);
    close(file);
    RETURN_IF(length <= 0, NOT_FOUND);
    name[length] = '\0'; /* the arguments are separated by zeros, so this leaves the program's name */
    return SUCCESS;
}

const char *nvmlErrorString(nvml_return code)
{
    switch (code) {
    case SUCCESS: return "Success";
    case UNINITIALIZED: return "Uninitialized";
    case INVALID_ARGUMENT: return "Invalid Argument";
    case NOT_SUPPORTED: return "Not Supported";
    case NO_PERMISSION: return "Insufficient Permissions";
    case NOT_FOUND: return "Not Found";
    case INSUFFICIENT_SIZE: return "Insufficient Size";
    case DRIVER_NOT_LOADED: return "Driver Not Loaded";
    case FUNCTION_NOT_FOUND: return "Function Not Found";
    case GPU_IS_LOST: return "GPU is lost";
    case VERSION_MISMATCH: return "Driver/library version mismatch";
    case ARGUMENT_VERSION_MISMATCH: return "Argument version mismatch";
    default: return "Unknown Error";
    }
}

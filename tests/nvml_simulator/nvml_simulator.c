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
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
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
static uint32_t driver_loads;

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

/* NVML's state does not survive fork(), nor a driver that is loaded again: one has to initialise again. */
static bool is_initialised(void)
{
    return references > 0 && owner_pid == getpid() && driver_loads == state->driver_loads;
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
    if (rule->latency_ms == CRASHES)
        raise(SIGSEGV);
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

CLOCK(nvmlDeviceGetApplicationsClock, device->max_clocks_mhz)
CLOCK(nvmlDeviceGetDefaultApplicationsClock, device->clocks_mhz)

/* ---- what only nvidia-smi's longer lists show: made of the device's index, so that a mix-up is seen ---- */

#define INDEX ((unsigned)index_of(device))

DEVICE_NUMBER(nvmlDeviceGetSupportedClocksThrottleReasons, unsigned long long, 0x1ffu)
DEVICE_NUMBER(nvmlDeviceGetGpuMaxPcieLinkGeneration, unsigned, 5)
DEVICE_NUMBER(nvmlDeviceGetPowerManagementMode, unsigned, 1)
DEVICE_NUMBER(nvmlDeviceGetRetiredPagesPendingStatus, unsigned, INDEX & 1)

DEVICE_NUMBER(nvmlDeviceGetCurrPcieLinkGeneration, unsigned, 3)
DEVICE_NUMBER(nvmlDeviceGetMaxPcieLinkGeneration, unsigned, 4)
DEVICE_NUMBER(nvmlDeviceGetCurrPcieLinkWidth, unsigned, 8)
DEVICE_NUMBER(nvmlDeviceGetMaxPcieLinkWidth, unsigned, 16)
DEVICE_NUMBER(nvmlDeviceGetPowerManagementDefaultLimit, unsigned, 250000)

VIDEO_ENGINE(nvmlDeviceGetJpgUtilization, 11 + INDEX)
VIDEO_ENGINE(nvmlDeviceGetOfaUtilization, 21 + INDEX)

DEVICE_NUMBER(nvmlDeviceGetPcieReplayCounter, unsigned, 6 + INDEX)

nvml_return nvmlDeviceGetPcieThroughput(nvml_device handle, unsigned direction, unsigned *kilobytes)
{
    ENTER_WHOLE_GPU(handle);
    RETURN_IF(direction > 1 || !kilobytes, INVALID_ARGUMENT);
    *kilobytes = 7000 * (1 + direction); /* sent, received */
    return SUCCESS;
}

nvml_return nvmlDeviceGetBAR1MemoryInfo(nvml_device handle, struct nvml_memory *memory)
{
    ENTER_WHOLE_GPU(handle);
    RETURN_IF(!memory, INVALID_ARGUMENT);
    *memory = (struct nvml_memory){.total = 256u << 20, .free = 252u << 20, .used = 4u << 20};
    return SUCCESS;
}

/* A device that is throttled by power has been so for half of the time. */
nvml_return nvmlDeviceGetViolationStatus(nvml_device handle, unsigned policy, struct nvml_violation *violation)
{
    ENTER_WHOLE_GPU(handle);
    RETURN_IF(policy > 1 || !violation, INVALID_ARGUMENT);
    violation->reference_us = now_us(CLOCK_MONOTONIC);
    bool is_slow = device->throttle_reasons & (policy == 0 ? 0x4 : 0x60);
    violation->violation_ns = is_slow ? violation->reference_us * 500 : 0;
    return SUCCESS;
}

#define DEVICE_PAIR(function, first_value, second_value)                              \
    nvml_return function(nvml_device handle, unsigned *first, unsigned *second)       \
    {                                                                                 \
        ENTER_WHOLE_GPU(handle);                                                      \
        RETURN_IF(!first || !second, INVALID_ARGUMENT);                               \
        *first = (first_value);                                                       \
        *second = (second_value);                                                     \
        return SUCCESS;                                                               \
    }

DEVICE_PAIR(nvmlDeviceGetEccMode, 1, INDEX & 1)
DEVICE_PAIR(nvmlDeviceGetGspFirmwareMode, 1, 0)
DEVICE_PAIR(nvmlDeviceGetGpuOperationMode, 0, 1)
DEVICE_PAIR(nvmlDeviceGetPowerManagementLimitConstraints, 100000, 400000)
DEVICE_PAIR(nvmlDeviceGetCudaComputeCapability, 9, 0)

nvml_return nvmlDeviceGetVgpuCapabilities(nvml_device handle, unsigned capability, unsigned *can)
{
    ENTER_WHOLE_GPU(handle);
    RETURN_IF(!can, INVALID_ARGUMENT);
    *can = capability == 1;
    return SUCCESS;
}

nvml_return nvmlGetVgpuDriverCapabilities(unsigned capability, unsigned *can)
{
    ENTER();
    RETURN_IF(!can, INVALID_ARGUMENT);
    *can = capability == 0;
    return SUCCESS;
}

nvml_return nvmlDeviceGetC2cModeInfoV(nvml_device handle, unsigned *is_on)
{
    ENTER_WHOLE_GPU(handle);
    RETURN_IF(!is_on, INVALID_ARGUMENT);
    *is_on = 0;
    return SUCCESS;
}

nvml_return nvmlDeviceGetPciInfoExt(nvml_device handle, struct nvml_pci_info_ext *pci)
{
    ENTER_WHOLE_GPU(handle);
    RETURN_IF(!pci, INVALID_ARGUMENT);
    RETURN_IF(pci->version != (sizeof *pci | 1U << 24), ARGUMENT_VERSION_MISMATCH);
    pci->base_class = 3;
    pci->sub_class = 2;
    return SUCCESS;
}

nvml_return nvmlDeviceGetGpuFabricInfoV(nvml_device handle, struct nvml_fabric_info *fabric)
{
    ENTER_WHOLE_GPU(handle);
    RETURN_IF(!fabric, INVALID_ARGUMENT);
    RETURN_IF(fabric->version != (sizeof *fabric | 2U << 24), ARGUMENT_VERSION_MISMATCH);
    memset(fabric->cluster_uuid, 0xab, sizeof fabric->cluster_uuid);
    fabric->status = SUCCESS;
    fabric->clique_id = 4 + INDEX;
    fabric->state = 3;
    return SUCCESS;
}

nvml_return nvmlDeviceGetEncoderStats(nvml_device handle, unsigned *sessions, unsigned *fps, unsigned *latency_us)
{
    ENTER_WHOLE_GPU(handle);
    RETURN_IF(!sessions || !fps || !latency_us, INVALID_ARGUMENT);
    *sessions = 2 + INDEX;
    *fps = 60;
    *latency_us = 1234;
    return SUCCESS;
}

nvml_return nvmlDeviceGetTotalEccErrors(nvml_device handle, unsigned error, unsigned period, unsigned long long *count)
{
    ENTER_WHOLE_GPU(handle);
    RETURN_IF(error > 1 || period > 1 || !count, INVALID_ARGUMENT);
    *count = 90 + 1000 * (1 + error) + 100 * period + INDEX + device->memory_errors[error];
    return SUCCESS;
}

nvml_return nvmlDeviceGetMemoryErrorCounter(nvml_device handle, unsigned error, unsigned period, unsigned place,
                                            unsigned long long *count)
{
    ENTER_WHOLE_GPU(handle);
    RETURN_IF(error > 1 || period > 1 || place > 7 || !count, INVALID_ARGUMENT);
    *count = 1000 * (1 + error) + 100 * period + 10 * place + INDEX;
    return SUCCESS;
}

nvml_return nvmlDeviceGetRetiredPages(nvml_device handle, unsigned cause, unsigned *count, unsigned long long *addresses)
{
    ENTER_WHOLE_GPU(handle);
    RETURN_IF(cause > 1 || !count, INVALID_ARGUMENT);
    unsigned capacity = addresses ? *count : 0, found = 3 + cause + INDEX;
    *count = found;
    RETURN_IF(capacity < found, INSUFFICIENT_SIZE);
    for (unsigned i = 0; i < found; i++)
        addresses[i] = 0x1000u * i;
    return SUCCESS;
}

nvml_return nvmlDeviceGetMarginTemperature(nvml_device handle, struct nvml_margin_temperature *margin)
{
    ENTER_WHOLE_GPU(handle);
    RETURN_IF(!margin, INVALID_ARGUMENT);
    margin->celsius = 92 - (int32_t)device->temperature_celsius;
    return SUCCESS;
}

nvml_return nvmlDeviceGetConfComputeProtectedMemoryUsage(nvml_device handle, struct nvml_memory *memory)
{
    ENTER_WHOLE_GPU(handle);
    RETURN_IF(!memory, INVALID_ARGUMENT);
    *memory = (struct nvml_memory){.total = 64u << 20, .free = 48u << 20, .used = 16u << 20};
    return SUCCESS;
}

/* What went through a link since it was set, in units of so many bytes; NVLink counts all links together only. */
static void fill_link_counter(const struct device *device, int link, unsigned unit, struct nvml_field_value *value)
{
    bool is_asked = unit == 1 || value->scope == UINT32_MAX;
    if (!device->traffic_since_us || device->bytes_per_us[link] < 0 || !is_asked) {
        value->code = NOT_SUPPORTED;
        return;
    }
    double elapsed = (double)(now_us(CLOCK_MONOTONIC) - device->traffic_since_us);
    value->value_type = UNSIGNED_LONG_LONG_VALUE;
    value->value.integer = (uint64_t)((double)device->counted_bytes + device->bytes_per_us[link] * elapsed) / unit;
    if (unit == 1 && device->has_short_counters)
        value->value.integer &= UINT32_MAX;
}

nvml_return nvmlDeviceGetFieldValues(nvml_device handle, int count, struct nvml_field_value *values)
{
    ENTER_WHOLE_GPU(handle);
    RETURN_IF(count < 1 || !values, INVALID_ARGUMENT);
    for (int i = 0; i < count; i++) {
        values[i].code = SUCCESS;
        values[i].value_type = UNSIGNED_INT_VALUE;
        switch (values[i].field) {
        case 82: /* temperature of the memory */
            values[i].value.integer = device->temperature_celsius + 7;
            break;
        case 185: /* mean power */
            values[i].value.integer = power_of(device).power_mw + 1000;
            break;
        case 186: /* power at this moment */
            values[i].value.integer = power_of(device).power_mw + 2000;
            break;
        case 198: /* bytes received through PCIe */
            fill_link_counter(device, 0, 1, &values[i]);
            break;
        case 197: /* and sent */
            fill_link_counter(device, 1, 1, &values[i]);
            break;
        case 139: /* KiB received through NVLink */
            fill_link_counter(device, 2, 1024, &values[i]);
            break;
        case 138: /* and sent */
            fill_link_counter(device, 3, 1024, &values[i]);
            break;
        case 226: /* whether it must be reset */
            values[i].value.integer = 0;
            break;
        case 227: /* whether it should be, after its jobs */
            values[i].value.integer = 1;
            break;
        default:
            values[i].code = NOT_SUPPORTED;
        }
    }
    return SUCCESS;
}

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

nvml_return nvmlDeviceGetSerial(nvml_device handle, char *serial, unsigned capacity)
{
    ENTER_WHOLE_GPU(handle);
    return copy_text("1320220012345", serial, capacity);
}

nvml_return nvmlDeviceGetAddressingMode(nvml_device handle, unsigned *mode)
{
    ENTER_WHOLE_GPU(handle);
    RETURN_IF(mode[0] != 0x1000008, ARGUMENT_VERSION_MISMATCH);
    mode[1] = 1;
    return SUCCESS;
}

nvml_return nvmlDeviceGetVbiosVersion(nvml_device handle, char *version, unsigned capacity)
{
    ENTER_WHOLE_GPU(handle);
    return copy_text("92.00.45.00.03", version, capacity);
}

nvml_return nvmlDeviceGetInforomImageVersion(nvml_device handle, char *version, unsigned capacity)
{
    ENTER_WHOLE_GPU(handle);
    return copy_text("G500.0200.00.03", version, capacity);
}

nvml_return nvmlDeviceGetInforomVersion(nvml_device handle, unsigned object, char *version, unsigned capacity)
{
    ENTER_WHOLE_GPU(handle);
    static const char *const versions[] = {"2.1", "6.16", "1.5"};
    RETURN_IF(object >= sizeof versions / sizeof *versions, INVALID_ARGUMENT);
    return copy_text(versions[object], version, capacity);
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

static void describe_bus(const struct device *device, struct nvml_pci_info *pci)
{
    *pci = (struct nvml_pci_info){.device_id = 0x20b010de};
    parse_bus_id(device->pci_bus_id, pci);
    memcpy(pci->bus_id, device->pci_bus_id, sizeof pci->bus_id - 1);
    snprintf(pci->bus_id_legacy, sizeof pci->bus_id_legacy, "%04x:%02x:%02x.0",
             pci->domain & 0xffff, pci->bus & 0xff, pci->device & 0xff);
}

nvml_return nvmlDeviceGetPciInfo_v3(nvml_device handle, struct nvml_pci_info *pci)
{
    ENTER_WHOLE_GPU(handle);
    RETURN_IF(!pci, INVALID_ARGUMENT);
    describe_bus(device, pci);
    return SUCCESS;
}

/* The structure then ended before the longer address. */
nvml_return nvmlDeviceGetPciInfo_v2(nvml_device handle, void *pci)
{
    ENTER_WHOLE_GPU(handle);
    RETURN_IF(!pci, INVALID_ARGUMENT);
    struct nvml_pci_info whole;
    describe_bus(device, &whole);
    memcpy(pci, &whole, offsetof(struct nvml_pci_info, bus_id));
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

/* ---- GPM: how much of a GPU works, between two samples ------------------------------------------------ */

struct gpm_sample {
    int device;
    uint64_t at_us;
    double percent_us[GPM_METRICS];
    double percent[GPM_METRICS];
};

/* Any kernel, multiprocessors, their warps, tensor cores, memory; MiB per second through PCIe, received and sent, and NVLink:
 * NVML's numbers of the simulated metrics. */
static const uint32_t GPM_IDS[GPM_METRICS] = {1, 2, 3, 5, 10, 21, 20, 60, 61};

nvml_return nvmlGpmQueryDeviceSupport(nvml_device handle, struct nvml_gpm_support *support)
{
    ENTER_WHOLE_GPU(handle);
    RETURN_IF(!support, INVALID_ARGUMENT);
    RETURN_IF(support->version != GPM_VERSION, ARGUMENT_VERSION_MISMATCH);
    support->is_supported = device->has_gpm;
    return SUCCESS;
}

/* A set keeps what one client waits for, of one device: real ones may have several, which nobody needs here. */
struct event_set { nvml_device device; uint64_t types, read; };

nvml_return nvmlEventSetCreate(struct event_set **set)
{
    ENTER();
    RETURN_IF(!set, INVALID_ARGUMENT);
    *set = calloc(1, sizeof **set);
    __atomic_add_fetch(&state->event_sets, 1, __ATOMIC_ACQ_REL);
    return SUCCESS;
}

nvml_return nvmlEventSetFree(struct event_set *set)
{
    ENTER();
    RETURN_IF(!set, INVALID_ARGUMENT);
    free(set);
    __atomic_sub_fetch(&state->event_sets, 1, __ATOMIC_ACQ_REL);
    return SUCCESS;
}

/* Only what happens from now on. */
nvml_return nvmlDeviceRegisterEvents(nvml_device handle, unsigned long long types, struct event_set *set)
{
    ENTER_WHOLE_GPU(handle);
    RETURN_IF(!set, INVALID_ARGUMENT);
    *set = (struct event_set){handle, types, __atomic_load_n(&device->faults.written, __ATOMIC_ACQUIRE)};
    return SUCCESS;
}

/* A device that is lost still has its events delivered: they are how one learns of it. */
nvml_return nvmlEventSetWait_v2(struct event_set *set, struct nvml_event_data *data, unsigned timeout_ms)
{
    ENTER();
    RETURN_IF(!set || !data || !set->types, INVALID_ARGUMENT);
    const struct fault_ring *ring = &state->devices[index_of_handle(set->device)].faults;
    for (uint64_t waited = 0;; waited++) {
        while (set->read < __atomic_load_n(&ring->written, __ATOMIC_ACQUIRE)) {
            struct fault fault = ring->entries[set->read++ % FAULT_LIMIT];
            if (fault.type & set->types) {
                *data = (struct nvml_event_data){set->device, fault.type, fault.data, fault.gpu_instance, fault.gpu_instance};
                return SUCCESS;
            }
        }
        RETURN_IF(waited >= timeout_ms, TIMEOUT);
        wait_ms(1);
    }
}

nvml_return nvmlGpmSampleAlloc(struct gpm_sample **sample)
{
    ENTER();
    RETURN_IF(!sample, INVALID_ARGUMENT);
    *sample = calloc(1, sizeof **sample);
    (*sample)->device = ANY_DEVICE;
    __atomic_add_fetch(&state->gpm_samples, 1, __ATOMIC_ACQ_REL);
    return SUCCESS;
}

nvml_return nvmlGpmSampleFree(struct gpm_sample *sample)
{
    ENTER();
    RETURN_IF(!sample, INVALID_ARGUMENT);
    free(sample);
    __atomic_sub_fetch(&state->gpm_samples, 1, __ATOMIC_ACQ_REL);
    return SUCCESS;
}

static nvml_return take_gpm_sample(const struct device *device, struct gpm_sample *sample)
{
    RETURN_IF(!sample, INVALID_ARGUMENT);
    uint32_t changes = __atomic_load_n(&device->activity_changes, __ATOMIC_ACQUIRE);
    const struct activity_segment *segment = &device->activity[changes % 2];
    *sample = (struct gpm_sample){.device = index_of(device), .at_us = now_us(CLOCK_MONOTONIC)};
    uint64_t elapsed = sample->at_us - segment->since_us;
    for (unsigned i = 0; i < GPM_METRICS; i++) {
        double percent = sample->percent[i] = segment->percent[i];
        sample->percent_us[i] = segment->percent_us[i] + (percent > 0 ? percent * (double)elapsed : 0);
    }
    return SUCCESS;
}

nvml_return nvmlGpmSampleGet(nvml_device handle, struct gpm_sample *sample)
{
    ENTER_WHOLE_GPU(handle);
    RETURN_IF(!device->has_gpm, NOT_SUPPORTED);
    return take_gpm_sample(device, sample);
}

nvml_return nvmlGpmMigSampleGet(nvml_device handle, unsigned gpu_instance, struct gpm_sample *sample)
{
    ENTER_WHOLE_GPU(handle);
    RETURN_IF(!device->has_gpm || device->mig_mode <= 0, NOT_SUPPORTED);
    for (int i = DEVICE_LIMIT; i < DEVICE_LIMIT + (int)state->instance_count; i++)
        if (state->devices[i].parent == index_of(device) && state->devices[i].gpu_instance == gpu_instance)
            return take_gpm_sample(&state->devices[i], sample);
    return INVALID_ARGUMENT;
}

/* The hardware refreshes its counters ten times a second: samples that are closer tell nothing. */
static void fill_gpm_metric(const struct gpm_sample *first, const struct gpm_sample *second,
                            struct nvml_gpm_metric *metric)
{
    metric->code = NOT_SUPPORTED;
    for (unsigned i = 0; i < GPM_METRICS; i++) {
        if (GPM_IDS[i] != metric->id || second->percent[i] < 0)
            continue;
        uint64_t elapsed = second->at_us - first->at_us;
        bool is_unknown = elapsed < GPM_REFRESH_US || isnan(second->percent[i]);
        metric->value = is_unknown ? NAN : (second->percent_us[i] - first->percent_us[i]) / (double)elapsed;
        metric->code = SUCCESS;
    }
}

nvml_return nvmlGpmMetricsGet(struct nvml_gpm_metrics *request)
{
    ENTER();
    RETURN_IF(!request || !request->first || !request->second, INVALID_ARGUMENT);
    RETURN_IF(request->version != GPM_VERSION, ARGUMENT_VERSION_MISMATCH);
    RETURN_IF(request->first->device == ANY_DEVICE || request->first->device != request->second->device,
              INVALID_ARGUMENT);
    for (unsigned i = 0; i < request->count; i++)
        fill_gpm_metric(request->first, request->second, &request->metrics[i]);
    return SUCCESS;
}

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
        driver_loads = state->driver_loads;
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

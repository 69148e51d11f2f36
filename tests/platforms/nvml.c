/*
 * A library of NVIDIA's driver for Windows, nvml.dll, with one device: as little as a tracker needs to find it and to read memory.
 * The process that uses the device is named by the first line of the file in NVML_PROCESS, and how many bytes it holds by the second.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __declspec(dllexport)
#define NOT_SUPPORTED 3
#define INSUFFICIENT_SIZE 7
#define TOTAL_BYTES 8000000000ULL

struct memory { unsigned long long total, free, used; };
struct place { char legacy[16]; unsigned domain, bus, device, id, subsystem; char bus_id[32]; };
struct process { unsigned pid; unsigned long long used; unsigned gpu_instance, compute_instance; };

static int read_process(struct process *process)
{
    const char *path = getenv("NVML_PROCESS");
    FILE *file = path ? fopen(path, "r") : NULL;
    int found = 0;
    memset(process, 0, sizeof *process);
    process->gpu_instance = process->compute_instance = 0xffffffff;
    if (file) {
        found = fscanf(file, "%u %llu", &process->pid, &process->used) == 2;
        fclose(file);
    }
    return found;
}

static int copy(char *to, unsigned room, const char *text)
{
    if (strlen(text) >= room)
        return INSUFFICIENT_SIZE;
    strcpy(to, text);
    return 0;
}

EXPORT int nvmlInit_v2(void) { return 0; }
EXPORT int nvmlInitWithFlags(unsigned flags) { (void)flags; return 0; }
EXPORT int nvmlShutdown(void) { return 0; }
EXPORT const char *nvmlErrorString(int code) { return code == NOT_SUPPORTED ? "Not Supported" : "Unknown Error"; }
EXPORT int nvmlSystemGetDriverVersion(char *to, unsigned room) { return copy(to, room, "560.94"); }
EXPORT int nvmlDeviceGetCount_v2(unsigned *count) { *count = 1; return 0; }
EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device)
{
    *device = (void *)(size_t)(index + 1);
    return index ? 2 : 0;
}
EXPORT int nvmlDeviceGetUUID(void *device, char *to, unsigned room)
{
    (void)device;
    return copy(to, room, "GPU-00000000-0000-4000-8000-000000000001");
}
EXPORT int nvmlDeviceGetName(void *device, char *to, unsigned room)
{
    (void)device;
    return copy(to, room, "NVIDIA of Tests");
}
EXPORT int nvmlDeviceGetMemoryInfo(void *device, struct memory *memory)
{
    struct process process;
    (void)device;
    memory->total = TOTAL_BYTES;
    memory->used = read_process(&process) ? process.used : 0;
    memory->free = memory->total - memory->used;
    return 0;
}
EXPORT int nvmlDeviceGetPciInfo_v3(void *device, struct place *place)
{
    (void)device;
    memset(place, 0, sizeof *place);
    place->bus = 1;
    place->id = 0x233010de;
    return copy(place->legacy, sizeof place->legacy, "0000:01:00.0") |
           copy(place->bus_id, sizeof place->bus_id, "00000000:01:00.0");
}
static int list(unsigned *count, struct process *processes)
{
    struct process process;
    unsigned room = *count;
    *count = read_process(&process);
    if (*count > room)
        return INSUFFICIENT_SIZE;
    if (*count)
        processes[0] = process;
    return 0;
}
EXPORT int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count, struct process *processes)
{
    (void)device;
    return list(count, processes);
}
EXPORT int nvmlDeviceGetGraphicsRunningProcesses_v3(void *device, unsigned *count, struct process *processes)
{
    (void)device;
    (void)processes;
    *count = 0;
    return 0;
}

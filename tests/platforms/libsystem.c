/* What macOS answers about processes, in the layout of its headers, from what Linux knows of them.
   The structures are written out field by field, so that they say the layout independently of the code under test. */

#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct rusage_info_v4 { /* sys/resource.h */
    uint8_t uuid[16];
    uint64_t user_time, system_time, pkg_idle_wkups, interrupt_wkups, pageins, wired_size, resident_size,
        phys_footprint, proc_start_abstime, proc_exit_abstime, child_user_time, child_system_time,
        child_pkg_idle_wkups, child_interrupt_wkups, child_pageins, child_elapsed_abstime, diskio_bytesread,
        diskio_byteswritten, cpu_time_qos[7], billed_system_time, serviced_system_time, logical_writes,
        lifetime_max_phys_footprint, instructions, cycles, billed_energy, serviced_energy,
        interval_max_phys_footprint, runnable_time;
};

struct proc_taskinfo { /* sys/proc_info.h */
    uint64_t virtual_size, resident_size, total_user, total_system, threads_user, threads_system;
    int32_t policy, faults, pageins, cow_faults, messages_sent, messages_received, syscalls_mach,
        syscalls_unix, csw, threadnum, numrunning, priority;
};

struct mac_timeval { int64_t sec; int32_t usec; };

struct kinfo_proc { /* sys/sysctl.h: struct extern_proc, then struct eproc */
    struct {
        struct mac_timeval starttime;
        void *vmspace, *sigacts;
        int32_t flag;
        char stat;
        int32_t pid, oppid, dupfd;
        void *user_stack, *exit_thread;
        int32_t debugger, sigwait;
        uint32_t estcpu;
        int32_t cpticks;
        uint32_t pctcpu;
        void *wchan, *wmesg;
        uint32_t swtime, slptime;
        struct mac_timeval realtimer[2], rtime;
        uint64_t uticks, sticks, iticks;
        int32_t traceflag;
        void *tracep;
        int32_t siglist;
        void *textvp;
        int32_t holdcnt;
        uint32_t sigmask, sigignore, sigcatch;
        uint8_t priority, usrpri;
        char nice, comm[17];
        void *pgrp, *addr;
        uint16_t xstat, acflag;
        void *ru;
    } proc;
    struct {
        void *paddr, *sess;
        struct { char lock[72]; void *ucred; uint32_t ids[4]; int32_t refcnt; } pcred;
        struct { int32_t ref; uint32_t uid; int16_t ngroups; uint32_t groups[16]; } ucred;
        struct { int32_t dummy; void *dummy2; int32_t dummy3[5]; void *dummy4[3]; } vm;
        int32_t ppid, pgid;
        int16_t jobc;
        int32_t tdev, tpgid;
        void *tsess;
        char wmesg[8];
        int32_t xsize;
        int16_t xrssize, xccount, xswrss;
        int32_t flag;
        char login[12];
        int32_t spare[4];
    } eproc;
};

enum { P_EXEC = 0x4000, SRUN = 2, SZOMB = 5, FORKED_BUT_NO_EXEC = 0x40 };

/* Of a machine whose clock does not tick in nanoseconds: 24 MHz, as on Apple's own processors. */
enum { NUMERATOR = 125, DENOMINATOR = 3 };

struct status {
    char name[17], state;
    int parent;
    unsigned long flags, faults, children_faults, major_faults, children_user, children_system, threads;
    unsigned long long start;
};

static uint64_t to_ticks(uint64_t nanoseconds) { return nanoseconds * DENOMINATOR / NUMERATOR; }

static ssize_t read_file(int pid, const char *name, char *buffer, size_t room)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/%s", pid, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    ssize_t size = read(fd, buffer, room - 1);
    close(fd);
    if (size >= 0)
        buffer[size] = 0;
    return size;
}

static int read_status(int pid, struct status *status)
{
    char text[1024];
    if (read_file(pid, "stat", text, sizeof text) <= 0)
        return -1;
    char *opening = strchr(text, '('), *closing = strrchr(text, ')');
    memset(status, 0, sizeof *status);
    snprintf(status->name, sizeof status->name, "%.*s", (int)(closing - opening - 1), opening + 1);
    sscanf(closing + 2, "%c %d %*d %*d %*d %*d %lu %lu %lu %lu %*u %*u %*u %lu %lu %*d %*d %lu %*d %llu",
           &status->state, &status->parent, &status->flags, &status->faults, &status->children_faults,
           &status->major_faults, &status->children_user, &status->children_system, &status->threads,
           &status->start);
    return 0;
}

static uint64_t read_kib(int pid, const char *field)
{
    char text[4096], *found;
    if (read_file(pid, "status", text, sizeof text) <= 0 || !(found = strstr(text, field)))
        return 0;
    return strtoull(found + strlen(field), NULL, 10) * 1024;
}

/* Of a zombie Linux tells only its parent. */
static uint64_t find_peak_of_zombie(int pid)
{
    siginfo_t info;
    struct rusage usage;
    if (syscall(SYS_waitid, P_PID, pid, &info, WEXITED | WNOHANG | WNOWAIT, &usage))
        return 0;
    return usage.ru_maxrss * 1024;
}

int proc_pid_rusage(int pid, int flavor, struct rusage_info_v4 *usage)
{
    struct status status;
    struct timespec clock;
    if (flavor != 4 || read_status(pid, &status) || clock_gettime((~pid << 3) | 2, &clock)) {
        errno = ESRCH;
        return -1;
    }
    uint64_t nanoseconds_per_tick = 1000000000 / sysconf(_SC_CLK_TCK);
    memset(usage, 0, sizeof *usage);
    usage->user_time = to_ticks(clock.tv_sec * 1000000000ull + clock.tv_nsec);
    usage->child_user_time = to_ticks(status.children_user * nanoseconds_per_tick);
    usage->child_system_time = to_ticks(status.children_system * nanoseconds_per_tick);
    usage->child_elapsed_abstime = status.children_faults;
    usage->proc_start_abstime = to_ticks(status.start * nanoseconds_per_tick);
    usage->resident_size = read_kib(pid, "VmRSS:");
    usage->lifetime_max_phys_footprint = read_kib(pid, "VmHWM:");
    if (status.state == 'Z' && !status.children_faults)
        usage->lifetime_max_phys_footprint = find_peak_of_zombie(pid);
    return 0;
}

int proc_pidinfo(int pid, int flavor, uint64_t argument, struct proc_taskinfo *task, int size)
{
    struct status status;
    if (flavor != 4 || argument || size < (int)sizeof *task || read_status(pid, &status) || status.state == 'Z')
        return 0;
    memset(task, 0, sizeof *task);
    task->virtual_size = read_kib(pid, "VmSize:");
    task->faults = status.faults + status.major_faults;
    task->pageins = status.major_faults;
    task->threadnum = status.threads;
    return sizeof *task;
}

int mach_timebase_info(uint32_t ratio[2])
{
    ratio[0] = NUMERATOR;
    ratio[1] = DENOMINATOR;
    return 0;
}

static void describe(int pid, const struct status *status, struct kinfo_proc *row)
{
    struct timespec now, boot;
    clock_gettime(CLOCK_REALTIME, &now);
    clock_gettime(CLOCK_BOOTTIME, &boot);
    /* One moment for all answers, or a process would seem to begin anew each time. */
    static int64_t booted_us;
    if (!booted_us)
        booted_us = (now.tv_sec - boot.tv_sec) * 1000000 + (now.tv_nsec - boot.tv_nsec) / 1000;
    int64_t started_us = booted_us + (int64_t)(status->start * 1000000 / sysconf(_SC_CLK_TCK));
    memset(row, 0, sizeof *row);
    row->proc.starttime.sec = started_us / 1000000;
    row->proc.starttime.usec = started_us % 1000000;
    row->proc.flag = status->flags & FORKED_BUT_NO_EXEC ? 0 : P_EXEC;
    row->proc.stat = status->state == 'Z' ? SZOMB : SRUN;
    row->proc.pid = pid;
    row->eproc.ppid = status->parent;
    memcpy(row->proc.comm, status->name, sizeof status->name);
}

static int list_processes(char *buffer, size_t *size)
{
    size_t room = buffer ? *size : 0, used = 0;
    struct dirent *entry;
    struct status status;
    DIR *directory = opendir("/proc");
    while ((entry = readdir(directory))) {
        int pid = atoi(entry->d_name);
        if (!pid || read_status(pid, &status))
            continue;
        if (buffer && used + sizeof(struct kinfo_proc) > room) {
            closedir(directory);
            errno = ENOMEM;
            return -1;
        }
        if (buffer)
            describe(pid, &status, (struct kinfo_proc *)(buffer + used));
        used += sizeof(struct kinfo_proc);
    }
    closedir(directory);
    *size = used;
    return 0;
}

static int list_arguments(int pid, char *buffer, size_t *size)
{
    char words[65536];
    ssize_t length = read_file(pid, "cmdline", words, sizeof words);
    if (length <= 0) {
        errno = EINVAL;
        return -1;
    }
    int count = 0;
    for (ssize_t at = 0; at < length; at++)
        count += !words[at];
    memcpy(buffer, &count, sizeof count);
    memcpy(buffer + 4, "/bin/program\0\0\0\0", 16);
    memcpy(buffer + 20, words, length);
    *size = 20 + length;
    return 0;
}

int sysctl(const int *name, unsigned length, char *buffer, size_t *size, void *new_value, size_t new_size)
{
    (void)new_value, (void)new_size;
    if (length == 3 && name[0] == 1 && name[1] == 14 && name[2] == 0)
        return list_processes(buffer, size);
    if (length == 3 && name[0] == 1 && name[1] == 49 && buffer)
        return list_arguments(name[2], buffer, size);
    errno = EINVAL;
    return -1;
}

_Static_assert(sizeof(struct kinfo_proc) == 648, "sys/sysctl.h");
_Static_assert(sizeof(struct rusage_info_v4) == 296, "sys/resource.h");
_Static_assert(sizeof(struct proc_taskinfo) == 96, "sys/proc_info.h");

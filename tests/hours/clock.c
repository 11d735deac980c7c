/* A preloaded library: the machine's clock, moved by PRESAGE_CLOCK_OFFSET_S seconds, and going on from there.

   Intervals (CLOCK_MONOTONIC) stay what they are, so that waiting takes as long as ever. Programs that are started with
   an environment of their own, as the embedded database is, get the moved clock all the same: it is passed on by execve.
   A wait until a time of the moved clock is a wait until that time of the machine's: the kernel does not know the first. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define OFFSET "PRESAGE_CLOCK_OFFSET_S="
#define PRELOAD "LD_PRELOAD="

static time_t seconds;
static int known;

/* The variable was changed: the clock jumps. */
void reread_offset(void)
{
    known = 0;
}

static time_t offset(void)
{
    if (!known) {
        const char *given = getenv("PRESAGE_CLOCK_OFFSET_S");
        seconds = given ? atol(given) : 0;
        known = 1;
    }
    return seconds;
}

int clock_gettime(clockid_t clock, struct timespec *at)
{
    static int (*real)(clockid_t, struct timespec *);
    if (!real)
        real = dlsym(RTLD_NEXT, "clock_gettime");
    int failed = real(clock, at);
    if (!failed && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        at->tv_sec += offset();
    return failed;
}

int gettimeofday(struct timeval *restrict at, void *restrict zone)
{
    (void)zone;
    struct timespec now;
    int failed = clock_gettime(CLOCK_REALTIME, &now);
    if (!failed)
        *at = (struct timeval){now.tv_sec, now.tv_nsec / 1000};
    return failed;
}

time_t time(time_t *at)
{
    struct timespec now = {0};
    clock_gettime(CLOCK_REALTIME_COARSE, &now);
    if (at)
        *at = now.tv_sec;
    return now.tv_sec;
}

/* The end of a wait. CLOCK_MONOTONIC counts from the start of the machine: what lies decades from that is of the other. */
static const struct timespec *until(const struct timespec *at, struct timespec *moved)
{
    if (at->tv_sec < 1000000000)
        return at;
    *moved = (struct timespec){at->tv_sec - offset(), at->tv_nsec};
    return moved;
}

int pthread_cond_timedwait(pthread_cond_t *restrict condition, pthread_mutex_t *restrict mutex,
                           const struct timespec *restrict at)
{
    static int (*real)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
    struct timespec moved;
    if (!real)
        real = dlvsym(RTLD_NEXT, "pthread_cond_timedwait", "GLIBC_2.3.2"); /* x86-64 has an older one as well */
    if (!real)
        real = dlsym(RTLD_NEXT, "pthread_cond_timedwait");
    return real(condition, mutex, until(at, &moved));
}

int sem_timedwait(sem_t *restrict semaphore, const struct timespec *restrict at)
{
    static int (*real)(sem_t *, const struct timespec *);
    struct timespec moved;
    if (!real)
        real = dlsym(RTLD_NEXT, "sem_timedwait");
    return real(semaphore, until(at, &moved));
}

int execve(const char *path, char *const arguments[], char *const environment[])
{
    static int (*real)(const char *, char *const[], char *const[]);
    if (!real)
        real = dlsym(RTLD_NEXT, "execve");
    size_t count = 0, kept = 0;
    while (environment && environment[count])
        count++;
    char *passed[count + 3];
    for (size_t n = 0; n < count; n++)
        if (strncmp(environment[n], OFFSET, strlen(OFFSET)) && strncmp(environment[n], PRELOAD, strlen(PRELOAD)))
            passed[kept++] = environment[n];
    for (char **each = environ; *each; each++)
        if (!strncmp(*each, OFFSET, strlen(OFFSET)) || !strncmp(*each, PRELOAD, strlen(PRELOAD)))
            passed[kept++] = *each;
    passed[kept] = NULL;
    return real(path, arguments, passed);
}

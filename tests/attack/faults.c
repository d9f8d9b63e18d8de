/* Loaded before the C library: fails one kind of system call from the nth on, or moves the clock.
 *   FAULT_CALL   write, sync, truncate, rename or read
 *   FAULT_ERRNO  the error, as a number
 *   FAULT_AFTER  how many calls of that kind succeed first
 *   FAULT_ONCE   set: only one call fails
 *   CLOCK_MOVED  seconds by which the clock is ahead (or, negative, behind)
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

static atomic_long calls;

static int fails(const char *kind) {
    const char *wanted = getenv("FAULT_CALL");
    if (!wanted || strcmp(wanted, kind)) return 0;
    long call = atomic_fetch_add(&calls, 1), after = atol(getenv("FAULT_AFTER"));
    if (call < after || (getenv("FAULT_ONCE") && call > after)) return 0;
    errno = atoi(getenv("FAULT_ERRNO"));
    return 1;
}

/* Pipes and terminals are not the disk. */
static int is_file(int fd) {
    struct stat st;
    return fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
}

#define REAL(result, name, ...) \
    static result (*real)(__VA_ARGS__); \
    if (!real) real = (result (*)(__VA_ARGS__))dlsym(RTLD_NEXT, #name)

#define FAILS(kind, fd) (is_file(fd) && fails(kind))

ssize_t write(int fd, const void *b, size_t n) {
    REAL(ssize_t, write, int, const void *, size_t);
    return FAILS("write", fd) ? -1 : real(fd, b, n);
}
ssize_t writev(int fd, const struct iovec *v, int n) {
    REAL(ssize_t, writev, int, const struct iovec *, int);
    return FAILS("write", fd) ? -1 : real(fd, v, n);
}
ssize_t pwrite(int fd, const void *b, size_t n, off_t at) {
    REAL(ssize_t, pwrite, int, const void *, size_t, off_t);
    return FAILS("write", fd) ? -1 : real(fd, b, n, at);
}
ssize_t pwrite64(int fd, const void *b, size_t n, off64_t at) {
    REAL(ssize_t, pwrite64, int, const void *, size_t, off64_t);
    return FAILS("write", fd) ? -1 : real(fd, b, n, at);
}
ssize_t pread64(int fd, void *b, size_t n, off64_t at) {
    REAL(ssize_t, pread64, int, void *, size_t, off64_t);
    return FAILS("read", fd) ? -1 : real(fd, b, n, at);
}
int fsync(int fd) {
    REAL(int, fsync, int);
    return FAILS("sync", fd) ? -1 : real(fd);
}
int fdatasync(int fd) {
    REAL(int, fdatasync, int);
    return FAILS("sync", fd) ? -1 : real(fd);
}
int ftruncate64(int fd, off64_t n) {
    REAL(int, ftruncate64, int, off64_t);
    return FAILS("truncate", fd) ? -1 : real(fd, n);
}
int ftruncate(int fd, off_t n) {
    REAL(int, ftruncate, int, off_t);
    return FAILS("truncate", fd) ? -1 : real(fd, n);
}
int rename(const char *from, const char *to) {
    REAL(int, rename, const char *, const char *);
    return fails("rename") ? -1 : real(from, to);
}
int clock_gettime(clockid_t clock, struct timespec *t) {
    REAL(int, clock_gettime, clockid_t, struct timespec *);
    int done = real(clock, t);
    const char *moved = getenv("CLOCK_MOVED");
    if (!done && moved && clock == CLOCK_REALTIME) t->tv_sec += atoll(moved);
    return done;
}

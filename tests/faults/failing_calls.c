/* failing_calls.c: to be preloaded: one call that opens, reads, writes, names or closes a file goes wrong, the one that
   FAULT_AT counts to; none for 0. FAULT_HOW says how: "fail" returns EIO, "kill" kills the process before the call.
   FAULT_COUNT names a file that gets the number of such calls of the whole run. With FAULT_NAMELESS=no there are no files
   without a name, as on a network. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static atomic_long count;

__attribute__((destructor)) static void tell(void) {
  const char *path = getenv("FAULT_COUNT");
  FILE *file = path ? fopen(path, "w") : NULL;
  if (!file) return;
  fprintf(file, "%ld\n", atomic_load(&count));
  fclose(file);
}

static int fails(void) {
  static long fail_at = -1;
  static int kills;
  if (fail_at < 0) {
    const char *at = getenv("FAULT_AT"), *how = getenv("FAULT_HOW");
    kills = how && strcmp(how, "kill") == 0;
    fail_at = at ? atol(at) : 0;
  }
  if (atomic_fetch_add(&count, 1) + 1 != fail_at) return 0;
  if (kills) kill(getpid(), SIGKILL);
  errno = EIO;
  return 1;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define FAILING(type, name, parameters, arguments) \
  type name parameters { return fails() ? -1 : REAL(name) arguments; }

FAILING(ssize_t, read, (int file, void *bytes, size_t size), (file, bytes, size))
FAILING(ssize_t, write, (int file, const void *bytes, size_t size), (file, bytes, size))
FAILING(int, fsync, (int file), (file))
FAILING(int, syncfs, (int file), (file))
FAILING(int, ftruncate, (int file, off_t size), (file, size))
FAILING(int, fchmod, (int file, mode_t mode), (file, mode))
FAILING(int, fchown, (int file, uid_t user, gid_t group), (file, user, group))
FAILING(int, fstat, (int file, struct stat *status), (file, status))
FAILING(int, stat, (const char *path, struct stat *status), (path, status))
FAILING(int, access, (const char *path, int mode), (path, mode))
FAILING(int, faccessat, (int folder, const char *path, int mode, int flags), (folder, path, mode, flags))
FAILING(int, linkat, (int a, const char *from, int b, const char *to, int flags), (a, from, b, to, flags))
FAILING(int, renameat, (int a, const char *from, int b, const char *to), (a, from, b, to))

/* What cannot be removed stays, whoever tries: this one can be the last, but does not fail. */
int unlinkat(int folder, const char *path, int flags) {
  const char *how = getenv("FAULT_HOW");
  if (how && strcmp(how, "kill") == 0) fails();
  return REAL(unlinkat)(folder, path, flags);
}

int close(int file) {
  const int fault = fails();
  const int result = REAL(close)(file);
  if (fault) errno = EIO;
  return fault ? -1 : result;
}

static int nameless(int flags) {
  const char *offered = getenv("FAULT_NAMELESS");
  if ((flags & O_TMPFILE) != O_TMPFILE || !offered || strcmp(offered, "no") != 0) return 1;
  errno = EOPNOTSUPP;
  return 0;
}

#define OPENING(name, parameters, arguments)                                          \
  int name parameters {                                                               \
    va_list more;                                                                     \
    va_start(more, flags);                                                            \
    const mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(more, mode_t) : 0;     \
    va_end(more);                                                                     \
    return !nameless(flags) || fails() ? -1 : REAL(name) arguments;                   \
  }
OPENING(open, (const char *path, int flags, ...), (path, flags, mode))
OPENING(openat, (int folder, const char *path, int flags, ...), (folder, path, flags, mode))

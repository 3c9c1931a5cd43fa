/* failing_malloc.c: to be preloaded: one allocation of the program fails, the one that FAULT_AT counts to; none for 0.
   FAULT_COUNT names a file that gets the number of allocations of the whole run.
   graphrun brings its own malloc, which calls the C library's by these names; a program without one calls malloc. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static atomic_long count;
static long fail_at;
static void *(*real_malloc)(size_t), *(*real_calloc)(size_t, size_t), *(*real_realloc)(void *, size_t);
static void *(*real_memalign)(size_t, size_t);

/* What dlsym() itself takes before it has found the functions. */
static char early[1 << 16];
static size_t early_used;
static void *from_early(size_t size) {
  const size_t at = early_used;
  early_used += (size + 15) & ~(size_t)15;
  if (early_used > sizeof early) abort();
  return early + at;
}

/* At the first call, which comes before any constructor: libstdc++ takes its reserve for exceptions. */
static int found(void) {
  static int finding;
  if (real_memalign) return 1;
  if (finding) return 0;
  finding = 1;
  const char *at = getenv("FAULT_AT");
  real_malloc = (void *(*)(size_t))dlsym(RTLD_NEXT, "__libc_malloc");
  real_calloc = (void *(*)(size_t, size_t))dlsym(RTLD_NEXT, "__libc_calloc");
  real_realloc = (void *(*)(void *, size_t))dlsym(RTLD_NEXT, "__libc_realloc");
  real_memalign = (void *(*)(size_t, size_t))dlsym(RTLD_NEXT, "__libc_memalign");
  fail_at = at ? atol(at) : 0;
  return 1;
}

__attribute__((destructor)) static void tell(void) {
  const char *path = getenv("FAULT_COUNT");
  if (!path) return;
  char digits[32];
  const int length = snprintf(digits, sizeof digits, "%ld\n", atomic_load(&count));
  const int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
  if (file < 0 || write(file, digits, (size_t)length) < 0) return;
  close(file);
}

static int fails(void) {
  const long number = atomic_fetch_add(&count, 1) + 1;
  if (number != fail_at) return 0;
  errno = ENOMEM;
  return 1;
}

void *__libc_malloc(size_t size) {
  if (!found()) return from_early(size);
  return fails() ? NULL : real_malloc(size);
}
void *__libc_calloc(size_t number, size_t size) {
  if (!found()) return from_early(number * size);
  return fails() ? NULL : real_calloc(number, size);
}
void *__libc_realloc(void *pointer, size_t size) {
  if (!found()) return from_early(size);
  return fails() ? NULL : real_realloc(pointer, size);
}
void *__libc_memalign(size_t alignment, size_t size) {
  return found() && !fails() ? real_memalign(alignment, size) : NULL;
}

/* Preloaded into a process, shows it another machine.

   What it opens below $REDIRECTED_FROM is opened below $REDIRECTED_TO instead; what there is below
   $REDIRECTED_ROOT takes the place of the same path, and a file below its folder "closed" keeps the
   user from writing to the same path; $REDIRECTED_MACHINE is the machine that uname tells. */

#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#define REAL(type, name, ...) ((type(*)(__VA_ARGS__))dlsym(RTLD_NEXT, name))
#define BUFFER char buffer[4096]

static const char *redirected(const char *path, char *buffer, size_t size) {
    const char *from = getenv("REDIRECTED_FROM"), *to = getenv("REDIRECTED_TO");
    const char *root = getenv("REDIRECTED_ROOT");
    size_t length = from ? strlen(from) : 0;
    if (!path)
        return path;
    if (from && to && !strncmp(path, from, length)) {
        snprintf(buffer, size, "%s%s", to, path + length);
        return buffer;
    }
    if (root && *path == '/') {
        snprintf(buffer, size, "%s%s", root, path);
        if (!REAL(int, "access", const char *, int)(buffer, F_OK))
            return buffer;
    }
    return path;
}

DIR *opendir(const char *path) {
    BUFFER;
    return REAL(DIR *, "opendir", const char *)(redirected(path, buffer, sizeof buffer));
}

void *dlopen(const char *path, int flags) {
    BUFFER;
    return REAL(void *, "dlopen", const char *, int)(redirected(path, buffer, sizeof buffer), flags);
}

int access(const char *path, int mode) {
    BUFFER;
    const char *root = getenv("REDIRECTED_ROOT");
    if (root && *path == '/' && mode & W_OK) {
        snprintf(buffer, sizeof buffer, "%s/closed%s", root, path);
        if (!REAL(int, "access", const char *, int)(buffer, F_OK)) {
            errno = EACCES;
            return -1;
        }
    }
    return REAL(int, "access", const char *, int)(redirected(path, buffer, sizeof buffer), mode);
}

int uname(struct utsname *names) {
    const char *machine = getenv("REDIRECTED_MACHINE");
    int status = REAL(int, "uname", struct utsname *)(names);
    if (machine)
        snprintf(names->machine, sizeof names->machine, "%s", machine);
    return status;
}

#define OPEN(name)                                                                                 \
    int name(const char *path, int flags, ...) {                                                   \
        BUFFER;                                                                                    \
        va_list arguments;                                                                         \
        va_start(arguments, flags);                                                                \
        int mode = flags & O_CREAT ? va_arg(arguments, int) : 0;                                   \
        va_end(arguments);                                                                         \
        return REAL(int, #name, const char *, int, ...)(redirected(path, buffer, sizeof buffer),   \
                                                        flags, mode);                              \
    }

OPEN(open)
OPEN(open64)

/* Which of these a program calls depends on the C library that it was built with. */
#define STAT(name)                                                                                 \
    int name(const char *path, void *result) {                                                     \
        BUFFER;                                                                                    \
        return REAL(int, #name, const char *, void *)(redirected(path, buffer, sizeof buffer),     \
                                                      result);                                     \
    }
#define XSTAT(name)                                                                                \
    int name(int version, const char *path, void *result) {                                        \
        BUFFER;                                                                                    \
        return REAL(int, #name, int, const char *, void *)(                                        \
            version, redirected(path, buffer, sizeof buffer), result);                             \
    }

STAT(stat)
STAT(stat64)
STAT(lstat)
STAT(lstat64)
XSTAT(__xstat)
XSTAT(__xstat64)
XSTAT(__lxstat)
XSTAT(__lxstat64)

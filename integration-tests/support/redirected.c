/* Preloaded into a process, shows it another kernel: what it opens below $REDIRECTED_FROM is opened
   below $REDIRECTED_TO instead. */

#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *redirected(const char *path, char *buffer, size_t size) {
    const char *from = getenv("REDIRECTED_FROM"), *to = getenv("REDIRECTED_TO");
    size_t length = from ? strlen(from) : 0;
    if (!from || !to || strncmp(path, from, length))
        return path;
    snprintf(buffer, size, "%s%s", to, path + length);
    return buffer;
}

DIR *opendir(const char *path) {
    char buffer[4096];
    DIR *(*real)(const char *) = dlsym(RTLD_NEXT, "opendir");
    return real(redirected(path, buffer, sizeof buffer));
}

#define OPEN(name)                                                                                 \
    int name(const char *path, int flags, ...) {                                                   \
        char buffer[4096];                                                                         \
        int (*real)(const char *, int, ...) = dlsym(RTLD_NEXT, #name);                             \
        va_list arguments;                                                                         \
        va_start(arguments, flags);                                                                \
        int mode = flags & O_CREAT ? va_arg(arguments, int) : 0;                                   \
        va_end(arguments);                                                                         \
        return real(redirected(path, buffer, sizeof buffer), flags, mode);                         \
    }

OPEN(open)
OPEN(open64)

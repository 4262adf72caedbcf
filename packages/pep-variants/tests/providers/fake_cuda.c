/* A stand-in for CUDA's driver library, told by environment variables what to say.
 *
 *   FAKE_CUDA_INIT     error code of the initialization
 *   FAKE_CUDA_VERSION  version as an integer (12060), or an error code with "!" before it
 *   FAKE_CUDA_COUNT    how many GPUs it claims, or an error code with "!" before it; by default
 *                      those of FAKE_CUDA_DEVICES
 *   FAKE_CUDA_DEVICES  comma-separated compute capabilities; "!1" refuses with that error code
 *   FAKE_CUDA_HANG     seconds that the initialization takes
 *   FAKE_CUDA_LOG      file to which the name of every call is appended
 *
 * Compiled with -DWITHOUT_<function> that function is missing.
 */
#define PREFIX "FAKE_CUDA_"
#include "fake_nvidia.h"

enum { INVALID_VALUE = 1, NOT_INITIALIZED = 3, MAJOR = 75, MINOR = 76 };

static int initialized;

#ifndef WITHOUT_cuInit
int cuInit(unsigned flags)
{
    const char *code = SETTING("INIT");
    record("init");
    hang();
    initialized = flags == 0 && (!code || !atoi(code));
    return flags ? INVALID_VALUE : code ? atoi(code) : 0;
}
#endif

int cuDriverGetVersion(int *version)
{
    record("version");
    return number_from(SETTING("VERSION"), version, INVALID_VALUE);
}

int cuDeviceGetCount(int *count)
{
    char text[32];
    if (!initialized)
        return NOT_INITIALIZED;
    if (SETTING("COUNT"))
        return number_from(SETTING("COUNT"), count, INVALID_VALUE);
    for (*count = 0; entry(*count, text); ++*count)
        ;
    return 0;
}

int cuDeviceGet(int *device, int index)
{
    char text[32];
    if (!entry(index, text))
        return INVALID_VALUE;
    *device = 1000 + index;
    return 0;
}

#ifndef WITHOUT_cuDeviceGetAttribute
int cuDeviceGetAttribute(int *value, int attribute, int device)
{
    char text[32];
    int major, minor;
    if (!entry(device - 1000, text) || (attribute != MAJOR && attribute != MINOR))
        return INVALID_VALUE;
    if (*text == '!')
        return atoi(text + 1);
    if (sscanf(text, "%d.%d", &major, &minor) != 2)
        return INVALID_VALUE;
    *value = attribute == MAJOR ? major : minor;
    return 0;
}
#endif

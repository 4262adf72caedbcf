/* A stand-in for the NVIDIA driver's management library, told by environment variables what to say.
 *
 *   FAKE_NVML_INIT     error code of the initialization
 *   FAKE_NVML_CUDA_V2  CUDA driver version as an integer (12080), or an error code with "!" before it
 *   FAKE_NVML_CUDA     the same for the older function
 *   FAKE_NVML_DEVICES  comma-separated: "9.0" a GPU; "!15" one that refuses to tell its compute
 *                      capability, "^15" one that cannot even be opened, with these error codes.
 *   FAKE_NVML_COUNT    how many GPUs it claims, or an error code with "!" before it; by default
 *                      those of FAKE_NVML_DEVICES
 *   FAKE_NVML_HANG     seconds that the initialization takes
 *   FAKE_NVML_LOG      file to which the name of every call is appended
 *
 * Compiled with -DWITHOUT_<function> that function is missing, as in older drivers.
 */
#define PREFIX "FAKE_NVML_"
#include "fake_nvidia.h"

enum { UNKNOWN = 999, INVALID_ARGUMENT = 2, MAX_DEVICES = 64 };

#ifndef WITHOUT_nvmlInitWithFlags
int nvmlInitWithFlags(unsigned flags)
{
    const char *code = SETTING("INIT");
    (void)flags;
    record("init");
    hang();
    return code ? atoi(code) : 0;
}
#endif

int nvmlShutdown(void)
{
    const char *code = SETTING("SHUTDOWN");
    record("shutdown");
    return code ? atoi(code) : 0;
}

#ifndef WITHOUT_nvmlErrorString
const char *nvmlErrorString(int code)
{
    return code == 18 ? "Driver/library version mismatch" : "an error";
}
#endif

#ifndef WITHOUT_nvmlSystemGetCudaDriverVersion_v2
int nvmlSystemGetCudaDriverVersion_v2(int *version)
{
    record("cuda_v2");
    return number_from(SETTING("CUDA_V2"), version, UNKNOWN);
}
#endif

#ifndef WITHOUT_nvmlSystemGetCudaDriverVersion
int nvmlSystemGetCudaDriverVersion(int *version)
{
    record("cuda");
    return number_from(SETTING("CUDA"), version, UNKNOWN);
}
#endif

int nvmlDeviceGetCount_v2(unsigned *count)
{
    char text[32];
    int claimed = 0, error;
    record("count");
    if (SETTING("COUNT")) {
        error = number_from(SETTING("COUNT"), &claimed, UNKNOWN);
        *count = (unsigned)claimed;
        return error;
    }
    for (*count = 0; entry((int)*count, text); ++*count)
        ;
    return 0;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device)
{
    char text[32];
    if (index >= MAX_DEVICES || !entry((int)index, text))
        return INVALID_ARGUMENT;
    if (*text == '^')
        return atoi(text + 1);
    *device = (void *)(size_t)(index + 1);
    return 0;
}

#ifndef WITHOUT_nvmlDeviceGetCudaComputeCapability
int nvmlDeviceGetCudaComputeCapability(void *device, int *major, int *minor)
{
    char text[32];
    if (!entry((int)(size_t)device - 1, text))
        return INVALID_ARGUMENT;
    if (*text == '!')
        return atoi(text + 1);
    return sscanf(text, "%d.%d", major, minor) == 2 ? 0 : UNKNOWN;
}
#endif

/* A stand-in for the loader of Level Zero, told by environment variables what to say.
 *
 *   FAKE_ZE_DRIVERS        drivers separated by ";", their devices by ",": "20.1.0" a GPU with this
 *                          IP version, "nvidia:…" one of another vendor, "npu:…" no GPU, "-" one
 *                          that does not tell its version, "!…" one that refuses
 *   FAKE_ZE_OLD_DRIVERS    the same for the older way to initialize
 *   FAKE_ZE_INIT_DRIVERS   error code of the newer way
 *   FAKE_ZE_INIT           error code of the older way
 *   FAKE_ZE_DRIVER_COUNT   how many drivers it claims
 *   FAKE_ZE_DEVICE_COUNT   how many devices every driver claims
 *   FAKE_ZE_DEVICE_ERROR   error code of listing the devices of the first driver
 *   FAKE_ZE_HANG           seconds that initialization takes
 *   FAKE_ZE_LOG            file to which the name of every call is appended
 *
 * Compiled with -DWITHOUT_<function> that function is missing, as in older loaders.
 */
#define PREFIX "FAKE_ZE_"
#include "fake.h"
#include <stdint.h>

enum {
    UNINITIALIZED = 0x78000001,
    INVALID_ARGUMENT = 0x78000004,
    DEVICE_LOST = 0x70000001,
    STYPE_DEVICE_PROPERTIES = 0x3,
    STYPE_DEVICE_IP_VERSION = 0x1000f,
    STYPE_INIT_DRIVER_TYPE = 0x00020021,
    TYPE_GPU = 1,
    TYPE_VPU = 5,
};

typedef struct {
    uint32_t stype;
    const void *next;
    uint32_t flags;
} driver_types;

typedef struct {
    uint32_t stype;
    const void *next;
    uint32_t version;
} ip_version;

typedef struct {
    uint32_t stype;
    void *next;
    uint32_t type, vendor, device, flags, subdevice, clock;
    uint64_t max_allocation;
    uint32_t max_contexts, max_priority, threads, simd_width, eus, subslices, slices;
    uint64_t timer_resolution;
    uint32_t timestamp_bits, kernel_timestamp_bits;
    uint8_t uuid[16];
    char name[256];
} device_properties;

static const char *drivers;

static uint32_t number(const char *text, uint32_t otherwise)
{
    return text ? (uint32_t)strtoul(text, NULL, 0) : otherwise;
}

/* Points to the index-th of the parts of text that one of the separators ends, or is NULL. */
static const char *part(const char *text, uint32_t index, const char *separators, const char *end)
{
    while (text && index--) {
        text += strcspn(text, separators);
        text = *text && !strchr(end, *text) ? text + 1 : NULL;
    }
    return text;
}

static uint32_t count_of(const char *text, const char *separators, const char *end)
{
    uint32_t count = 0;
    if (!text || !*text || strchr(end, *text))
        return 0;
    while (part(text, count, separators, end))
        ++count;
    return count;
}

static int list(uint32_t *count, void **handles, uint32_t there, uint32_t claimed, uintptr_t base)
{
    if (handles)
        for (uint32_t index = 0; index < *count; ++index)
            handles[index] = index < there ? (void *)(base + index + 1) : NULL;
    if (!handles || *count > claimed)
        *count = claimed;
    return 0;
}

static int list_drivers(uint32_t *count, void **handles)
{
    uint32_t there = count_of(drivers, ";", "");
    return list(count, handles, there, number(SETTING("DRIVER_COUNT"), there), 0);
}

#ifndef WITHOUT_zeInitDrivers
int zeInitDrivers(uint32_t *count, void **handles, const driver_types *types)
{
    record("zeInitDrivers");
    hang();
    if (number(SETTING("INIT_DRIVERS"), 0))
        return (int)number(SETTING("INIT_DRIVERS"), 0);
    if (!types || types->stype != STYPE_INIT_DRIVER_TYPE || types->next || types->flags != 1)
        return INVALID_ARGUMENT;
    drivers = SETTING("DRIVERS");
    return list_drivers(count, handles);
}
#endif

#ifndef WITHOUT_zeInit
int zeInit(uint32_t flags)
{
    record("zeInit");
    hang();
    if (number(SETTING("INIT"), 0))
        return (int)number(SETTING("INIT"), 0);
    drivers = SETTING("OLD_DRIVERS");
    return flags == 1 ? 0 : INVALID_ARGUMENT;
}
#endif

int zeDriverGet(uint32_t *count, void **handles)
{
    record("zeDriverGet");
    hang();
    return drivers ? list_drivers(count, handles) : UNINITIALIZED;
}

#ifndef WITHOUT_zeDeviceGet
int zeDeviceGet(void *driver, uint32_t *count, void **handles)
{
    uintptr_t index = (uintptr_t)driver - 1;
    const char *devices = part(drivers, (uint32_t)index, ";", "");
    uint32_t there = count_of(devices, ",;", ";");
    if (!devices)
        return INVALID_ARGUMENT;
    if (index == 0 && number(SETTING("DEVICE_ERROR"), 0))
        return (int)number(SETTING("DEVICE_ERROR"), 0);
    return list(count, handles, there, number(SETTING("DEVICE_COUNT"), there), 1000 * (index + 1));
}
#endif

#ifndef WITHOUT_zeDeviceGetProperties
int zeDeviceGetProperties(void *device, device_properties *properties)
{
    uintptr_t handle = (uintptr_t)device - 1;
    const char *text = part(drivers, (uint32_t)(handle / 1000 - 1), ";", "");
    ip_version *ip = properties->next;
    unsigned architecture, release, revision;
    text = part(text, (uint32_t)(handle % 1000), ",;", ";");
    if (!text || properties->stype != STYPE_DEVICE_PROPERTIES)
        return INVALID_ARGUMENT;
    if (*text == '!')
        return DEVICE_LOST;
    memset((char *)properties + 16, 0xff, sizeof *properties - 16);
    properties->type = strncmp(text, "npu:", 4) ? TYPE_GPU : TYPE_VPU;
    properties->vendor = strncmp(text, "nvidia:", 7) ? 0x8086 : 0x10de;
    text += strcspn(text, "-0123456789");
    if (ip && ip->stype == STYPE_DEVICE_IP_VERSION && !ip->next
        && sscanf(text, "%u.%u.%u", &architecture, &release, &revision) == 3)
        /* The bits between are reserved: they may be anything. */
        ip->version = architecture << 22 | release << 14 | 0xff << 6 | revision;
    return 0;
}
#endif

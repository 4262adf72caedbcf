/* What the stand-ins for NVIDIA's libraries share, beside fake.h. */
#include "fake.h"

/* Reads a number, or returns the error code after a "!", or otherwise without a setting. */
static inline int number_from(const char *text, int *number, int otherwise)
{
    if (!text)
        return otherwise;
    if (*text == '!')
        return atoi(text + 1);
    *number = atoi(text);
    return 0;
}

/* Copies the entry of the device to text and returns 1, or returns 0 past the last one. */
static inline int entry(int index, char text[32])
{
    const char *devices = SETTING("DEVICES");
    if (!devices || !*devices)
        return 0;
    while (index--) {
        devices = strchr(devices, ',');
        if (!devices++)
            return 0;
    }
    snprintf(text, 32, "%.*s", (int)strcspn(devices, ","), devices);
    return 1;
}

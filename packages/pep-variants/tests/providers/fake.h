/* What the stand-ins for driver libraries share. Define PREFIX, of their variables, before. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SETTING(name) getenv(PREFIX name)

/* Appends the name of a call to the log. */
static inline void record(const char *call)
{
    const char *path = SETTING("LOG");
    FILE *log = path ? fopen(path, "a") : NULL;
    if (log) {
        fprintf(log, "%s\n", call);
        fclose(log);
    }
}

/* Takes the seconds that it is told to take. */
static inline void hang(void)
{
    const char *seconds = SETTING("HANG");
    if (seconds)
        sleep((unsigned)atoi(seconds));
}

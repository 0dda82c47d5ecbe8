#include "text.h"

#include <ctype.h>
#include <string.h>

char *trim(char *text) {
    char *end = text + strlen(text) - 1;
    while (isspace(*end)) end--;
    end[1] = 0;
    char *start = text;
    while (isspace(*start)) start++;
    memmove(text, start, strlen(start));
    return text;
}

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "text.h"

static void check(const char *given, const char *expected) {
    char *text = malloc(strlen(given) + 1);
    strcpy(text, given);
    assert(trim(text) == text);
    assert(strcmp(text, expected) == 0);
    free(text);
}

int main(void) {
    check("  a b \t\n", "a b");
    check("a", "a");
    check("", "");
    check("   ", "");
    check("\n", "");
    check(" \xc3\xa9 ", "\xc3\xa9");
    check("   abc", "abc");
    return 0;
}

#include <assert.h>

#include "hex.h"

static void good(const char *text, uint32_t expected) {
    uint32_t value = 77;
    assert(parse_hex(text, &value) == 0 && value == expected);
}

static void bad(const char *text) {
    uint32_t value = 77;
    assert(parse_hex(text, &value) == -1 && value == 77);
}

int main(void) {
    good("0", 0);
    good("ff", 255);
    good("0xDeadBeef", 0xDEADBEEFu);
    good("0XA", 10);
    good("ffffffff", 0xFFFFFFFFu);
    good("0000000000000000000012", 0x12);
    good("0x000000000FFFFFFFF", 0xFFFFFFFFu);
    bad("");
    bad("0x");
    bad("100000000");
    bad("fffffffff");
    bad("g");
    bad("12 ");
    bad(" 12");
    bad("+1");
    bad("-1");
    bad("0x0x1");
    bad("1x2");
    return 0;
}

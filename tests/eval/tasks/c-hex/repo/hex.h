#ifndef HEX_H
#define HEX_H

#include <stdint.h>

/* Read `text` as a hexadecimal number with or without 0x in front, upper or lower case, into `value`.
 * Returns 0, or -1 and leaves `value` unchanged: for an empty number, for any other character (also white space or a
 * sign), and for a number that does not fit. Zeros in front are allowed, however many. */
int parse_hex(const char *text, uint32_t *value);

#endif

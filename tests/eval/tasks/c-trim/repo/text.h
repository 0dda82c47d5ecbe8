#ifndef TEXT_H
#define TEXT_H

/* Remove white space at both ends, in place; returns its argument. */
char *trim(char *text);

#endif

#ifndef RING_H
#define RING_H

#define RING_SIZE 8

struct ring {
    char data[RING_SIZE];
    unsigned head, tail;
};

void ring_init(struct ring *ring);
int ring_count(const struct ring *ring);
int ring_put(struct ring *ring, int byte);
int ring_get(struct ring *ring);

#endif

#include "ring.h"

void ring_init(struct ring *ring) { ring->head = ring->tail = 0; }

int ring_count(const struct ring *ring) { return (ring->head - ring->tail) % RING_SIZE; }

int ring_put(struct ring *ring, int byte) {
    ring->data[ring->head] = byte;
    ring->head = (ring->head + 1) % RING_SIZE;
    return 1;
}

int ring_get(struct ring *ring) {
    int byte = ring->data[ring->tail];
    ring->tail = (ring->tail + 1) % RING_SIZE;
    return byte;
}

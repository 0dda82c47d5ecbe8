#include <assert.h>

#include "ring.h"

int main(void) {
    struct ring ring;
    ring_init(&ring);
    assert(ring_count(&ring) == 0 && ring_get(&ring) == -1);
    for (int i = 0; i < RING_SIZE; i++) assert(ring_put(&ring, 250 + i % 6) && ring_count(&ring) == i + 1);
    assert(!ring_put(&ring, 1) && ring_count(&ring) == RING_SIZE);
    for (int i = 0; i < RING_SIZE; i++) assert(ring_get(&ring) == 250 + i % 6);
    assert(ring_count(&ring) == 0 && ring_get(&ring) == -1);
    for (int round = 0; round < 1000; round++) {
        assert(ring_put(&ring, round % 256) && ring_put(&ring, 255));
        assert(ring_count(&ring) == 2);
        assert(ring_get(&ring) == round % 256 && ring_get(&ring) == 255);
    }
    assert(ring_get(&ring) == -1);
    return 0;
}

class Emitter {
  #listeners = new Map();

  on(name, listener) {
    if (!this.#listeners.has(name)) this.#listeners.set(name, []);
    this.#listeners.get(name).push(listener);
  }

  off(name, listener) {
    const listeners = this.#listeners.get(name) ?? [];
    const at = listeners.indexOf(listener);
    if (at >= 0) listeners.splice(at, 1);
  }

  emit(name, ...values) {
    for (const listener of this.#listeners.get(name) ?? []) listener(...values);
  }
}

module.exports = { Emitter };

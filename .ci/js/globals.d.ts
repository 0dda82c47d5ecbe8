// What the vendored scripts provide, as far as ours use it.
declare const htmx: {
  swap(context: { target: Element; text: string; swap: string; sourceElement?: Element }): Promise<void>;
  process(element: Element): void;
};

// Loaded before an entry point: its clock is CLOCK_SHIFT_MS ahead of the machine's, or behind where that is negative.
const shiftMs = Number(process.env.CLOCK_SHIFT_MS ?? 0);
const now = Date.now;

globalThis.Date = class extends Date {
  constructor(...parts) {
    super(...(parts.length === 0 ? [now() + shiftMs] : parts));
  }

  static now() {
    return now() + shiftMs;
  }
};

// Loaded before an entry point: its clock is CLOCK_OFF_MS milliseconds off.
const RightDate = Date;
const off = Number(process.env.CLOCK_OFF_MS);
globalThis.Date = class extends RightDate {
  constructor(...args) {
    if (args.length === 0) super(RightDate.now() + off);
    else super(...args);
  }

  static now() {
    return RightDate.now() + off;
  }
};

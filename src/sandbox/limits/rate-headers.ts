import { HEADER } from '../../contract/headers.ts';
import type { Reading } from './window.ts';

/** The five headers of every API answer (Limits); the reset is in epoch seconds, with milliseconds as a fraction. */
export function rateHeaders(reading: Reading): Record<string, string> {
  return {
    [HEADER.limit]: String(reading.limit),
    [HEADER.remaining]: String(reading.remaining),
    [HEADER.reset]: String(reading.resetAt / 1000),
    [HEADER.burstLimit]: String(reading.burstLimit),
    [HEADER.burstRemaining]: String(reading.burstRemaining),
  };
}

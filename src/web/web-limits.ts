/** How often the addresses that anybody may try are open, in a minute. */
export interface WebLimits {
  /** Requests of one address that begin or end an install; those of one that succeeds do not count. */
  installs: number;
  /** Wrong passwords of one address. */
  operator: number;
  /** Wrong passwords of all addresses together. */
  operatorInAll: number;
}

/** In milliseconds. */
export const LIMIT_WINDOW_MS = 60_000;

/** Far above what people do. */
export const WEB_LIMITS: WebLimits = { installs: 120, operator: 10, operatorInAll: 100 };

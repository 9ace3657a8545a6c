/** How often the addresses that anybody may try are open, in a minute. */
export interface WebLimits {
  /** Installs that one address begins or fails; what succeeds does not count. */
  installs: number;
  /** Wrong passwords of one address. */
  operator: number;
  /** Wrong passwords of all addresses together. */
  operatorInAll: number;
}

/** In milliseconds. */
export const LIMIT_WINDOW_MS = 60_000;

/** Far above what people do. */
export const WEB_LIMITS: WebLimits = { installs: 60, operator: 10, operatorInAll: 100 };

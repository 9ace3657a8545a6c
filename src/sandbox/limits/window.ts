import { BURST_SHARE, BURST_WINDOWS } from '../../contract/limits.ts';

/** Requests counted so far; times in ms since 1970, undefined before the first one. */
export interface Bucket {
  windowStart: number | undefined;
  used: number;
  burstStart: number | undefined;
  burstUsed: number;
}

/** What a bucket allows. */
export interface Rule {
  /** Requests in a window. */
  limit: number;
  /** Length of a window in milliseconds. */
  windowMs: number;
}

/** Where a bucket stands; times in ms since 1970. */
export interface Reading {
  limit: number;
  remaining: number;
  resetAt: number;
  burstLimit: number;
  burstRemaining: number;
  /** When the burst allowance is full again; undefined while it is. */
  burstResetAt: number | undefined;
}

export function createBucket(): Bucket {
  return { windowStart: undefined, used: 0, burstStart: undefined, burstUsed: 0 };
}

/** Extra requests after the limit: half of it, rounded down (Limits, "Burst allowance"). */
export function burstLimit(rule: Rule): number {
  return Math.floor(rule.limit * BURST_SHARE);
}

function isOpen(start: number | undefined, lengthMs: number, now: number): start is number {
  // A clock that was set back before the start ends the window too: its reset would be too far ahead.
  return start !== undefined && now >= start && now < start + lengthMs;
}

/** Where the bucket stands at this moment, without counting anything. */
export function read(bucket: Bucket, rule: Rule, now: number): Reading {
  const { windowStart, burstStart } = bucket;
  const burstMs = rule.windowMs * BURST_WINDOWS;
  const open = isOpen(windowStart, rule.windowMs, now);
  const bursting = isOpen(burstStart, burstMs, now);
  const most = burstLimit(rule);
  return {
    limit: rule.limit,
    remaining: open ? rule.limit - bucket.used : rule.limit,
    resetAt: (open ? windowStart : now) + rule.windowMs,
    burstLimit: most,
    burstRemaining: bursting ? most - bucket.burstUsed : most,
    burstResetAt: bursting ? burstStart + burstMs : undefined,
  };
}

/**
 * Counts a request if it is allowed.
 *
 * A window is fixed: it starts with its first request. When its limit is used up, requests draw on the burst allowance,
 * which is full again ten windows after its first request (Limits). A refused request counts nowhere.
 *
 * @param now ms since 1970
 * @returns whether the request is allowed
 */
export function take(bucket: Bucket, rule: Rule, now: number): boolean {
  const { remaining, burstRemaining, burstResetAt } = read(bucket, rule, now);
  if (!isOpen(bucket.windowStart, rule.windowMs, now)) {
    bucket.windowStart = now;
    bucket.used = 0;
  }
  if (remaining > 0) {
    bucket.used += 1;
    return true;
  }
  if (burstRemaining === 0) return false;
  if (burstResetAt === undefined) {
    bucket.burstStart = now;
    bucket.burstUsed = 0;
  }
  bucket.burstUsed += 1;
  return true;
}

/** How long, in milliseconds, until a request that was refused at `now` would be allowed. */
export function waitMs(reading: Reading, now: number): number {
  return Math.min(reading.resetAt, reading.burstResetAt ?? reading.resetAt) - now;
}

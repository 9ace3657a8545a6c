import { GUARDS, type GuardRules } from './guards.ts';

/** Requests in a time, as configured. */
export interface GuardLimit {
  limit: number;
  /** Milliseconds. */
  windowMs: number;
}

/** The problem with a text that {@link readGuardLimit} cannot read. */
export const GUARD_LIMIT_SHAPE = 'must be requests/seconds, like 5/1 or 1/3, both above 0';

const SHAPE = /^(\d{1,6})\/(\d{1,5}(?:\.\d{1,3})?)$/;

/** Reads `requests/seconds`, such as `1/3` for one request in three seconds; undefined when it is something else. */
export function readGuardLimit(text: string): GuardLimit | undefined {
  const [, requests = '0', seconds = '0'] = SHAPE.exec(text) ?? [];
  const read = { limit: Number(requests), windowMs: Math.round(Number(seconds) * 1000) };
  return read.limit > 0 && read.windowMs > 0 ? read : undefined;
}

/** The rules of the two guards that the specification leaves open (Limits, note), with the limits that are given. */
export function openGuards(given: {
  analytics?: GuardLimit | undefined;
  resource?: GuardLimit | undefined;
}): Partial<GuardRules> {
  const { analytics, resource } = given;
  return {
    ...(analytics && { analytics: { ...GUARDS.analytics, ...analytics } }),
    ...(resource && { resource: { ...GUARDS.resource, ...resource } }),
  };
}

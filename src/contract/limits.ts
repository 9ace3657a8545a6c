/** The service's plans, with the requests a minute that each allows a company (Limits, "Standard rate limit"). */
export const PLAN_LIMITS = { starter: 50, professional: 100, enterprise: 200 } as const;

/** A plan's name in lower case. */
export type Plan = keyof typeof PLAN_LIMITS;

/** The plan that a company starts with: "The default starts at 50 requests per minute". */
export const DEFAULT_PLAN: Plan = 'starter';

/** Requests a minute of a partner integration, per company, beside the company's own limit (Limits, "Other rate limits"). */
export const PARTNER_LIMIT = 120;

/** Calls a minute to a server that an application is configured with for authorization (Limits, "Other rate limits"). */
export const AUTHORIZATION_CALL_LIMIT = 600;

/** Length of the window that the limits count in, in milliseconds ("never more than 1 minute ahead"). */
export const WINDOW_MS = 60_000;

/** The burst allowance as a share of the limit (Limits, "Burst allowance"). */
export const BURST_SHARE = 0.5;

/** The burst window, counted in rate-limit windows: ten minutes to the one minute of a window. */
export const BURST_WINDOWS = 10;

/** Results on a page when the request names no limit (Limits, "Pagination sizes"). */
export const PAGE_LIMIT_DEFAULT = 50;

/** The most results that a page may hold (Limits, "Pagination sizes"). */
export const PAGE_LIMIT_MAX = 100;

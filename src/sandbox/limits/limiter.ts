import { PARTNER_LIMIT } from '../../contract/limits.ts';
import type { Application } from '../state/applications.ts';
import { type Company, planLimit } from '../state/company.ts';
import { type Bucket, createBucket, type Reading, type Rule, read, take } from './window.ts';

/** The company's own limit, or the one that all partner integrations of the company share (Limits). */
export type LimitScope = 'plan' | 'partner';

/** Both limits of a company. */
export const LIMIT_SCOPES = ['plan', 'partner'] as const satisfies readonly LimitScope[];

/** Which limit a caller's requests count against; without an application it is an API token of the company. */
export function scopeOf(application: Application | undefined): LimitScope {
  return application === undefined || application.kind === 'automation' ? 'plan' : 'partner';
}

/** The limit itself, in requests a window (Limits). */
export function limitOf(company: Company, scope: LimitScope): number {
  return scope === 'partner' ? PARTNER_LIMIT : planLimit(company);
}

/** The bucket of one limit of one company: plain data. */
interface Account {
  companyId: string;
  scope: LimitScope;
  bucket: Bucket;
}

/** The standard and the partner limit of every company, each counted per company, never per token. */
export class Limiter {
  readonly #windowMs: number;
  #accounts = new Map<string, Account>();

  /** @param windowMs length of the rate-limit window in milliseconds */
  constructor(windowMs: number) {
    this.#windowMs = windowMs;
  }

  /** Plain data; what is set is taken over, not copied. */
  get state(): Map<string, Account> {
    return this.#accounts;
  }

  set state(accounts: Map<string, Account>) {
    this.#accounts = accounts;
  }

  /** Counts a request if it is allowed, and tells whether it is; `now` in ms since 1970. */
  take(company: Company, scope: LimitScope, now: number): boolean {
    const key = `${scope} ${company.id}`;
    let account = this.#accounts.get(key);
    if (account === undefined) {
      account = { companyId: company.id, scope, bucket: createBucket() };
      this.#accounts.set(key, account);
    }
    return take(account.bucket, this.#rule(company, scope), now);
  }

  /** Where a limit stands, without counting a request. */
  read(company: Company, scope: LimitScope, now: number): Reading {
    const bucket = this.#accounts.get(`${scope} ${company.id}`)?.bucket ?? createBucket();
    return read(bucket, this.#rule(company, scope), now);
  }

  /** The untouched reading of a limit of that size: what a caller sees of whom the company is not known. */
  readUntouched(limit: number, now: number): Reading {
    return read(createBucket(), { limit, windowMs: this.#windowMs }, now);
  }

  /** Every limit of these companies that something was counted against. */
  list(
    companies: readonly Company[],
    now: number,
  ): { company: Company; scope: LimitScope; reading: Reading }[] {
    return companies.flatMap((company) =>
      LIMIT_SCOPES.filter((scope) => this.#accounts.has(`${scope} ${company.id}`)).map((scope) => ({
        company,
        scope,
        reading: this.read(company, scope, now),
      })),
    );
  }

  #rule(company: Company, scope: LimitScope): Rule {
    return { limit: limitOf(company, scope), windowMs: this.#windowMs };
  }
}

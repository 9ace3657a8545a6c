import { PAGE_LIMIT_MAX } from '../contract/limits.ts';
import { IDENTITY_PATH } from '../contract/routes.ts';
import type { Admission, Permit, RateBudget } from './budget/rate-budget.ts';
import { ServiceError } from './errors.ts';
import type { HttpAnswer } from './http.ts';
import { type Identity, readIdentity } from './identity.ts';
import { type PageItems, readListPage } from './list-page.ts';
import { type AllowedOrigins, type PageAddress, refuseSecrets } from './next-address.ts';
import { readRateHeaders } from './rate-headers.ts';
import { refusalOf } from './refusal.ts';
import { secretIds } from './secret-ids.ts';
import type { ServiceClock } from './service-clock.ts';
import type { Transport } from './transport.ts';

/** Stands for bytes that are no UTF-8. */
const NO_UTF8 = '\ufffd';

/** What the sync and the install talk to the API with. */
export interface ServiceApiParts {
  /** `{base_url}`, without a slash at its end. */
  apiUrl: string;
  transport: Transport;
  clock: ServiceClock;
  budget: RateBudget;
  origins: AllowedOrigins;
  /** Whether a text holds a secret of the app, in any form: it can be no id and no address then. */
  givesSecretAway: (text: string) => boolean;
}

/** A page of which no more is read yet than where it leads. */
export interface AnsweredPage {
  /** Address of the next page; null is the end. */
  next: string | null;
  /** @throws ServiceError to wait on, when it is no page after all */
  read(): ReadPage;
}

/** A page that was read. */
export interface ReadPage extends PageItems {
  next: string | null;
  /** Tells why an id can be none in a sentence; to be asked for one after the other. */
  refuseId?: (id: string) => string | undefined;
}

/** What sync and install need of the API: each request under a permit of the budget, each failure a {@link ServiceError}. */
export class ServiceApi {
  readonly #parts: ServiceApiParts;

  constructor(parts: ServiceApiParts) {
    this.#parts = parts;
  }

  /** Asks for the right to call a route on behalf of a company. */
  acquire(company: string, route: string) {
    return this.#parts.budget.acquire(company, route);
  }

  /**
   * The address of a page: the first with the largest limit, the others as the page before gave them, which carry
   * the limit already (Pagination, 1 to 3).
   *
   * @param cursor the `next` of the page before, or null for the first page
   * @throws ServiceError to give up on, when the token must not go there
   */
  pageAddress(route: string, cursor: string | null): PageAddress {
    if (cursor !== null) return this.#parts.origins.check(cursor);
    return { url: new URL(`${this.#parts.apiUrl}${route}?limit=${PAGE_LIMIT_MAX}`) };
  }

  /** Gives a permit back whose request is not sent after all. */
  async giveBack(permit: Permit): Promise<void> {
    await this.#parts.budget.settle(permit, { unsent: true });
  }

  /** Gives back at once what {@link listPage} has left to the next page. */
  async giveBackLate(company: string, route: string): Promise<void> {
    await this.#parts.budget.settleLate(company, route);
  }

  /**
   * Reads one page of a list (Pagination), and asks at once for the right to read the page that it leads on to.
   * Its own permit is given back with that, or with the next {@link acquire}, or soon.
   *
   * @param parts `wantsMore` whether the page after this one, if there is one, is wanted now; `accept` is told where
   *   the page leads, and how many bytes of it are in memory from then on; it throws when it cannot lead there
   * @param signal ends the request early
   * @returns the page; and the admission, where one was wanted
   * @throws ServiceError; or what `accept` throws
   */
  async listPage(
    at: PageAddress,
    permit: Permit,
    accessToken: string,
    { wantsMore, accept }: { wantsMore: () => boolean; accept?: (page: AnsweredPage, bytes: number) => void },
    signal?: AbortSignal,
  ): Promise<{ page: AnsweredPage; admission: Admission | undefined }> {
    const { transport, givesSecretAway } = this.#parts;
    const read = ({ bytes }: HttpAnswer) => {
      const { next, keptBytes, isUtf8, read: readItems } = readListPage(bytes);
      if (next !== null) refuseSecrets(next, accessToken, givesSecretAway);
      const page: AnsweredPage = {
        next,
        read: () => {
          const { items, texts } = readItems();
          const refuseSecret = secretIds({ items, bytes }, accessToken, givesSecretAway);
          const refuseId = (id: string) =>
            isUtf8 || !id.includes(NO_UTF8) ? refuseSecret(id) : 'Its id is no text in UTF-8.';
          return { next, items, texts, refuseId };
        },
      };
      accept?.(page, keptBytes);
      return { read: page, leadsOn: next !== null };
    };
    const request = { method: 'GET', ...at } as const;
    const got = await transport.exchange(request, permit, accessToken, { wantsMore, read }, signal);
    return { page: got.read, admission: got.admission };
  }

  /**
   * Asks which company a token belongs to. Needs no permit, as the company is not known before; what the answer
   * says about its limit goes into the budget.
   *
   * @returns undefined when the service does not tell (404, 403, or a whole answer without an id)
   * @throws ServiceError when it cannot be asked, or answers anything else: to take trouble for "does not tell" would
   *   make a company that is known a second instance
   */
  async identity(accessToken: string): Promise<Identity | undefined> {
    const { apiUrl, transport, clock, givesSecretAway } = this.#parts;
    const url = new URL(apiUrl + IDENTITY_PATH);
    const answer = await transport.sendBare({ method: 'GET', url }, IDENTITY_PATH, accessToken);
    const now = clock.now();
    const rate = readRateHeaders(answer.headers, now);
    const failure = refusalOf(answer, now);
    if (failure !== undefined) {
      const { status } = answer;
      if (status === 404 || status === 403) return undefined;
      if (failure.remedy === 'wait') throw failure;
      throw new ServiceError('wait', failure.message, { status, cause: failure });
    }
    const company = readIdentity(answer.body, accessToken, givesSecretAway);
    if (company !== undefined && rate !== undefined) {
      // The answer stands, whether or not Redis hears of it, and nobody waits for that: requests later on hear of it first.
      this.#parts.budget.observe(company.id, rate).catch(() => undefined);
    }
    return company;
  }
}

import { createHash, randomBytes } from 'node:crypto';
import type { ServiceApi } from '../client/service-api.ts';
import type { InstanceStore } from '../store/instances.ts';
import type { OAuthClient } from '../tokens/oauth-client.ts';
import type { Tokens } from '../tokens/tokens.ts';
import { companyOf } from './company.ts';
import { authorizeFailure, exchangeFailure, notStored } from './install-failures.ts';
import { InstallError, type Installer, type InstallSession } from './install-types.ts';
import { InstallsUnderWay } from './installs-under-way.ts';
import { issueState, spendState } from './state.ts';

/** What an install works with. */
export interface OAuthInstallerParts {
  oauth: OAuthClient;
  api: ServiceApi;
  tokens: Tokens;
  instances: InstanceStore;
  /** Told of an install that the end of the process has overtaken. */
  onCutOff: () => void;
  /** Starts the syncs of a new or returning instance. */
  onInstalled: (instanceId: string) => Promise<unknown>;
  /** Leaves secrets out of what the service said, before it is kept or a person sees it; the install's code, too. */
  hideSecrets?: (text: string, code?: string) => string;
  now?: () => number;
}

/** The OAuth authorization code flow (Authentication, 4), from the button to an active instance. */
export class OAuthInstaller implements Installer {
  readonly #parts: OAuthInstallerParts;
  readonly #now: () => number;
  readonly #underWay: InstallsUnderWay;

  constructor(parts: OAuthInstallerParts) {
    this.#parts = parts;
    this.#underWay = new InstallsUnderWay(parts.onCutOff);
    this.#now = parts.now ?? Date.now;
  }

  start(session: InstallSession): URL {
    return this.#parts.oauth.authorizeUrl(issueState(session, this.#now()));
  }

  async finish(session: InstallSession, query: URLSearchParams): Promise<string> {
    try {
      return await this.#finish(session, query);
    } catch (error) {
      if (!(error instanceof InstallError)) throw error;
      const { failure, message, cause } = error;
      throw new InstallError(failure, this.#hidden(message, query), {
        cause,
        code: query.get('code') ?? undefined,
      });
    }
  }

  #hidden(text: string, query: URLSearchParams): string {
    return this.#parts.hideSecrets?.(text, query.get('code') ?? undefined) ?? text;
  }

  async #finish(session: InstallSession, query: URLSearchParams): Promise<string> {
    // Before anything else: "if the returned state differs, the process must be aborted".
    const state = query.get('state');
    if (state === null || !spendState(session, state, this.#now())) {
      throw new InstallError(
        'state',
        'This answer does not belong to an installation that this browser has started.',
      );
    }
    const error = query.get('error');
    if (error !== null) throw authorizeFailure(error, query.get('error_description'));
    const code = query.get('code');
    if (!code) throw new InstallError('malformed', 'The service sent neither a code nor an error.');

    await this.#parts.tokens.checkWritable();
    const id = await this.#underWay.run(() => this.#receive({ code, state }, query));
    await this.#parts.onInstalled(id);
    return id;
  }

  async #receive({ code, state }: { code: string; state: string }, query: URLSearchParams): Promise<string> {
    const { api, instances, oauth, tokens } = this.#parts;
    const askedAt = this.#now();
    const grant = await oauth.exchange(code, state).catch((cause: unknown) => {
      throw exchangeFailure(cause);
    });
    // Of two installs at once, the later grant stays, whichever company's question takes longer.
    const installedAt = this.#now();
    const company = await companyOf(api, grant.accessToken, () => instances.knowsCompanies());
    const name = company?.name === undefined ? undefined : this.#hidden(company.name, query);
    const day = new Date(installedAt).toISOString().slice(0, 10);
    const id = instanceIdOf(company?.id);
    const instance = {
      id,
      companyId: company?.id ?? null,
      name: name ?? company?.id ?? `Company installed on ${day}`,
      askedAt,
      installedAt,
    };
    const isStored = await tokens.install(instance, grant).catch((cause: unknown) => {
      throw notStored(cause);
    });
    if (!isStored && (await instances.find(id))?.status === 'disconnected') {
      throw new InstallError(
        'disconnected',
        'Somebody has disconnected the company after the service had authorized the app: that stands.',
      );
    }
    return id;
  }

  /** Begins the end: no install is begun any more, and those that may hold a grant have some seconds. */
  end(): void {
    this.#underWay.end();
  }

  /** Resolves when no install is under way any more. */
  settled(): Promise<void> {
    return this.#underWay.settled();
  }
}

/**
 * The instance of a company: always the same one, so that two installs of a company that end at the same moment
 * are one instance. Without a company id every install is an instance of its own.
 */
function instanceIdOf(companyId: string | undefined): string {
  const source = companyId === undefined ? randomBytes(32) : Buffer.from(companyId, 'utf8');
  return `ins_${createHash('sha256').update(source).digest('hex').slice(0, 32)}`;
}

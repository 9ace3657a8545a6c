import { randomBytes } from 'node:crypto';
import { CALLBACK_PATH } from '../../contract/routes.ts';
import { SANDBOX_DEFAULTS } from '../../contract/sandbox.ts';
import { type OAuthScope, SCOPE } from '../../contract/scopes.ts';
import { Problem } from '../http/answer.ts';
import type { ApplicationKind } from '../types.ts';

/** An OAuth application, as registered with the service. */
export interface Application {
  name: string;
  kind: ApplicationKind;
  clientId: string;
  clientSecret: string;
  redirectUris: readonly string[];
  /** What it asks a customer for at installation (Authentication, 9). */
  scopes: readonly OAuthScope[];
  /** Where its server tells who the channel behind a token is (Authentication, 10); on this machine. */
  introspectionUrl?: string | undefined;
}

type NewApplication = Omit<Application, 'clientId' | 'clientSecret'> &
  Partial<Record<'clientId' | 'clientSecret', string | undefined>>;

const LOCAL_REDIRECT_URIS = ['http://localhost:3000', 'http://127.0.0.1:3000'].map(
  (app) => app + CALLBACK_PATH,
);

/** The OAuth applications that are registered. */
export class Applications {
  readonly #byClientId = new Map<string, Application>();

  /** @param redirectUris addresses of the application at start, beside those of an app on port 3000 of this machine */
  constructor(redirectUris: readonly string[]) {
    const { clientId, clientSecret } = SANDBOX_DEFAULTS;
    this.#byClientId.set(clientId, {
      name: 'Partner app',
      kind: 'partner',
      clientId,
      clientSecret,
      redirectUris: [...new Set([...redirectUris, ...LOCAL_REDIRECT_URIS])],
      scopes: [SCOPE.shared],
    });
  }

  /** Plain data; what is set is taken over, not copied. */
  get state(): Application[] {
    return this.all();
  }

  set state(applications: Application[]) {
    this.#byClientId.clear();
    for (const application of applications) this.#byClientId.set(application.clientId, application);
  }

  /**
   * Registers an application. Credentials that are not chosen are random, of characters that form-encoding leaves alone.
   * Throws a {@link Problem} (400) for a client id that there is already.
   */
  register({ clientId, clientSecret, ...spec }: NewApplication): Application {
    if (clientId !== undefined && this.#byClientId.has(clientId)) {
      throw new Problem(400, `client_id: there is an application ${clientId} already.`);
    }
    const application = {
      ...spec,
      clientId: clientId ?? `app_${randomBytes(8).toString('hex')}`,
      clientSecret: clientSecret ?? randomBytes(32).toString('base64url'),
    };
    this.#byClientId.set(application.clientId, application);
    return application;
  }

  all(): Application[] {
    return [...this.#byClientId.values()];
  }

  get(clientId: string): Application | undefined {
    return this.#byClientId.get(clientId);
  }
}

import { randomBytes } from 'node:crypto';
import { CALLBACK_PATH } from '../../contract/routes.ts';
import { SANDBOX_DEFAULTS } from '../../contract/sandbox.ts';
import { type OAuthScope, SCOPE } from '../../contract/scopes.ts';
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

  /** Registers an application; its credentials are random. */
  register(spec: Omit<Application, 'clientId' | 'clientSecret'>): Application {
    const application = {
      ...spec,
      clientId: `app_${randomBytes(8).toString('hex')}`,
      // Plain Base64 with its + and /: a client that form-encodes credentials first (the specification does not) fails.
      clientSecret: randomBytes(32).toString('base64'),
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

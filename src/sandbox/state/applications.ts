import { randomBytes } from 'node:crypto';
import { CALLBACK_PATH } from '../../contract/routes.ts';
import { SANDBOX_DEFAULTS } from '../../contract/sandbox.ts';
import { SCOPE } from '../../contract/scopes.ts';
import { Problem } from '../http/answer.ts';
import type { Application } from '../types.ts';

type Chosen = 'client_id' | 'client_secret';
type NewApplication = Omit<Application, Chosen> & { [Name in Chosen]?: string | undefined };

const LOCAL_REDIRECT_URIS = ['http://localhost:3000', 'http://127.0.0.1:3000'].map(
  (app) => app + CALLBACK_PATH,
);

/** The OAuth applications that are registered. */
export class Applications {
  /** By client id; plain data. */
  state = new Map<string, Application>();

  /**
   * @param redirectUris addresses of the application at start, beside those of an app on port 3000 of this machine
   * @param name of that application
   */
  constructor(redirectUris: readonly string[], name: string) {
    this.register({
      name,
      kind: 'partner',
      client_id: SANDBOX_DEFAULTS.clientId,
      client_secret: SANDBOX_DEFAULTS.clientSecret,
      redirect_uris: [...new Set([...redirectUris, ...LOCAL_REDIRECT_URIS])],
      scopes: [SCOPE.shared],
    });
  }

  /**
   * Registers an application. Credentials that the caller does not choose are random, without characters that form-
   * encoding changes. Throws a {@link Problem} (400) for a client id in use.
   */
  register(spec: NewApplication): Application {
    const { client_id = `app_${randomBytes(8).toString('hex')}` } = spec;
    const { client_secret = randomBytes(32).toString('base64url') } = spec;
    if (this.state.has(client_id)) {
      throw new Problem(400, `client_id: there is an application ${client_id} already.`);
    }
    const application = { ...spec, client_id, client_secret };
    this.state.set(client_id, application);
    return application;
  }

  all(): Application[] {
    return [...this.state.values()];
  }

  get(clientId = ''): Application | undefined {
    return this.state.get(clientId);
  }
}

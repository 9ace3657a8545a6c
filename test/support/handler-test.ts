import type { Kysely } from 'kysely';
import { afterAll } from 'vitest';
import type { ChangeBatch, ChangeHandler } from '../../src/changes/change-handler.ts';
import { readSettings } from '../../src/config/fork-settings.ts';
import { ConfigError } from '../../src/config/variables.ts';
import { RESOURCES } from '../../src/integration/resources.ts';
import type { HandlerTables, Settings } from '../../src/integration/types.ts';
import type {
  Company,
  CompanySpec,
  RecordChanges,
  Sandbox,
  SeededResource,
} from '../../src/sandbox/sandbox.ts';
import '../../src/sandbox/vitest.ts';
import { openDatabase } from '../../src/store/open-database.ts';
import type { Resource } from '../../src/sync/resource.ts';
import { HttpBrowser } from './http-browser.ts';
import { startTestApp } from './test-app.ts';
import type { LogLine } from './test-logger.ts';
import { waitFor } from './wait-for.ts';

/** A change that the handler was given, with the list that it belongs to. */
export type GivenChange = {
  [Resource in ChangeBatch['resource']]: {
    resource: Resource;
  } & Extract<ChangeBatch, { resource: Resource }>['changes'][number];
}[ChangeBatch['resource']];

/** A company of the sandbox whose changes a handler gets. */
export interface HandlerTest {
  sandbox: Sandbox;
  company: Company;
  /** The app's database, with the tables of `src/integration/schema.ts`. */
  db: Kysely<HandlerTables>;
  /** What the app and the handler have logged. */
  log: readonly LogLine[];
  /**
   * Installs the company, or syncs it again, and waits until the handler has everything, and its writes are sent.
   *
   * @returns what the handler took meanwhile, in order
   * @throws Error with the handler's own message if it failed, or the service's if it refused a write
   */
  sync(): Promise<GivenChange[]>;
  /** Changes records at the service: how many are created, changed or deleted. The next sync brings them. */
  change(changes: RecordChanges): void;
}

/** What a test of a handler wants besides. */
interface HandlerTestOptions {
  /** The fork's variables, as `.env` has them: `{ CRM_URL: 'http://127.0.0.1:8080' }`. Others count as unset. */
  settings?: { [Name in keyof Settings]?: string };
  /** In the place of the fork's own. */
  fork?: { resources: readonly Resource[]; settings: () => Promise<unknown> };
}

const FORK = { resources: RESOURCES, settings: () => import('../../src/integration/settings.ts') };

/**
 * Starts the app with a handler, SQLite, Redis and the sandbox. It syncs the lists of `src/integration/resources.ts`.
 * All of it ends with the test file.
 *
 * @param records of the company: documents with an `id`; the sandbox adds what a record needs besides
 * @throws ConfigError if `src/integration/settings.ts` refuses the settings
 */
export async function startHandlerTest(
  handler: ChangeHandler,
  records: Pick<CompanySpec, SeededResource> = {},
  { settings: variables = {}, fork = FORK }: HandlerTestOptions = {},
): Promise<HandlerTest> {
  const { settings, problems } = await readSettings(fork.settings, variables);
  if (problems.length > 0) throw new ConfigError(problems);
  const given: GivenChange[] = [];
  const { app, config, sandbox, log } = await startTestApp({
    handler: async (batch, context) => {
      const returned = await handler(batch, context);
      const { resource, changes } = batch;
      given.push(...changes.map((change) => ({ resource, ...change }) as GivenChange));
      return returned;
    },
    settings,
    resources: fork.resources,
  });
  const spec = { name: 'Acme', plan: 'enterprise', contacts: 0, conversations: 0, ...records } as const;
  const company = sandbox.company(spec);
  const [administrator] = company.teammates.filter(({ is_admin }) => is_admin);
  let id = '';
  const status = async () => (id === '' ? undefined : await app.status.read(id));
  const lists = async () => Object.entries((await status())?.resources ?? {});
  const db = await openDatabase(config.databaseUrl);
  afterAll(() => db.destroy());

  async function install(): Promise<string> {
    const browser = new HttpBrowser(config.publicUrl);
    const { url } = await browser.get('/install');
    const consent = { teammate_id: administrator?.id ?? '', decision: 'approve' };
    const dashboard = await browser.post(url, consent);
    return dashboard.url.pathname.replace('/instances/', '');
  }

  return {
    sandbox,
    company,
    db: db as unknown as Kysely<HandlerTables>,
    log: log.lines,
    async sync() {
      const finished = new Map((await lists()).map(([name, { finished_at }]) => [name, finished_at]));
      if (id === '') id = await install();
      else await app.control.syncNow(id);
      const outcome = await waitFor(async () => {
        const now = await lists();
        const failed = now.find(([, { handler: delivery }]) => delivery?.last_error != null);
        if (failed !== undefined) return new Error(failed[1].handler?.last_error ?? '');
        const isDelivered = now.every(([name, { state, finished_at, handler: delivery }]) => {
          const isNew = finished_at !== (finished.get(name) ?? null);
          return state === 'idle' && isNew && delivery?.pending === 0;
        });
        const { pending = 0, sending = 0, writes = [] } = (await status())?.outbox ?? {};
        const lost = writes.find(({ state }) => state === 'refused' || state === 'unknown');
        if (lost !== undefined) return new Error(`${lost.key}: ${lost.error}`);
        return isDelivered && pending + sending === 0;
      }, 'the handler to have everything');
      if (outcome instanceof Error) throw outcome;
      return given.splice(0);
    },
    change: (changes) => void sandbox.changeRecords(company.id, changes),
  };
}

import type { ChangeBatch, ChangeHandler } from '../../src/changes/change-handler.ts';
import type { Company, CompanySpec, RecordChanges, Sandbox } from '../../src/sandbox/sandbox.ts';
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
  /** What the app and the handler have logged. */
  log: readonly LogLine[];
  /**
   * Installs the company, or syncs it again, and waits until the handler has everything.
   *
   * @returns what the handler took meanwhile, in order
   * @throws Error with the handler's own message if it failed
   */
  sync(): Promise<GivenChange[]>;
  /** Changes records at the service: how many are created, changed or deleted. The next sync brings them. */
  change(changes: RecordChanges): void;
}

/**
 * Starts the app with a handler, SQLite, Redis and the sandbox. All of it ends with the test file.
 *
 * @param records of the company: documents with an `id`; the sandbox adds what a record needs besides
 */
export async function startHandlerTest(
  handler: ChangeHandler,
  records: Pick<CompanySpec, 'contacts' | 'conversations'> = {},
): Promise<HandlerTest> {
  const given: GivenChange[] = [];
  const { app, config, sandbox, log } = await startTestApp({
    handler: async (batch, context) => {
      const returned = await handler(batch, context);
      const { resource, changes } = batch;
      given.push(...changes.map((change) => ({ resource, ...change }) as GivenChange));
      return returned;
    },
  });
  const spec = { name: 'Acme', plan: 'enterprise', contacts: 0, conversations: 0, ...records } as const;
  const company = sandbox.company(spec);
  const [administrator] = company.teammates.filter(({ is_admin }) => is_admin);
  let id = '';
  const lists = async () => Object.entries((await app.control.status(id))?.resources ?? {});

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
    log: log.lines,
    async sync() {
      const finished = new Map((await lists()).map(([name, { finished_at }]) => [name, finished_at]));
      if (id === '') id = await install();
      else await app.control.syncNow(id);
      const outcome = await waitFor(async () => {
        const now = await lists();
        const failed = now.find(([, { handler: delivery }]) => delivery?.last_error != null);
        if (failed !== undefined) return new Error(failed[1].handler?.last_error ?? '');
        return now.every(([name, { state, finished_at, handler: delivery }]) => {
          const isNew = finished_at !== (finished.get(name) ?? null);
          return state === 'idle' && isNew && delivery?.pending === 0;
        });
      }, 'the handler to have everything');
      if (outcome instanceof Error) throw outcome;
      return given.splice(0);
    },
    change: (changes) => void sandbox.changeRecords(company.id, changes),
  };
}

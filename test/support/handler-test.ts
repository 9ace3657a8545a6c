import type { ChangeBatch, ChangeHandler } from '../../src/changes/change-handler.ts';
import type { Company, CompanySpec, RecordChanges, Sandbox } from '../../src/sandbox/sandbox.ts';
import { install, readStatus, waitForStatus } from './install.ts';
import { startTestApp } from './test-app.ts';
import type { LogLine } from './test-logger.ts';

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
  const { sandbox, session, log } = await startTestApp({
    handler: async (batch, context) => {
      const returned = await handler(batch, context);
      const { resource, changes } = batch;
      given.push(...changes.map((change) => ({ resource, ...change }) as GivenChange));
      return returned;
    },
  });
  const spec = { name: 'Acme', plan: 'enterprise', contacts: 0, conversations: 0, ...records } as const;
  const company = sandbox.company(spec);
  const browser = session();
  let id: string | undefined;
  return {
    sandbox,
    company,
    log: log.lines,
    async sync() {
      let finished: Record<string, string | null> = {};
      if (id === undefined) id = await install(browser, company);
      else {
        const { resources } = await readStatus(browser, id);
        finished = Object.fromEntries(
          Object.entries(resources).map(([name, list]) => [name, list.finished_at]),
        );
        await browser.post(`/instances/${id}/sync`);
      }
      const { resources } = await waitForStatus(browser, id, (status) =>
        Object.entries(status.resources).every(([name, { state, finished_at, handler: delivery }]) => {
          const isOver = state === 'idle' && finished_at !== (finished[name] ?? null);
          return delivery?.last_error != null || (isOver && delivery?.pending === 0);
        }),
      );
      for (const { handler: delivery } of Object.values(resources)) {
        if (delivery?.last_error != null) throw new Error(delivery.last_error);
      }
      return given.splice(0);
    },
    change: (changes) => void sandbox.changeRecords(company.id, changes),
  };
}

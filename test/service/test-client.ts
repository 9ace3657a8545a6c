import { randomUUID } from 'node:crypto';
import { Redis } from 'ioredis';
import { afterAll } from 'vitest';
import type { JournalRow } from '../../src/sandbox/journal.ts';
import type { SandboxOptions } from '../../src/sandbox/sandbox.ts';
import { RateBudget } from '../../src/service/budget/rate-budget.ts';
import type { ServiceClient } from '../../src/service/calls/call-types.ts';
import type { AccessTokens } from '../../src/service/calls/send-call.ts';
import {
  type ClientFor,
  type ClientParts,
  createServiceClient,
} from '../../src/service/calls/service-client.ts';
import { ServiceError } from '../../src/service/errors.ts';
import { HttpClient } from '../../src/service/http.ts';
import { AllowedOrigins } from '../../src/service/next-address.ts';
import { ServiceClock } from '../../src/service/service-clock.ts';
import { Transport } from '../../src/service/transport.ts';
import { createCheckedSandbox } from '../sandbox/checked-sandbox.ts';
import { type Company, TestSandbox } from '../sandbox/test-sandbox.ts';
import { readBudgetState } from '../support/budget-state.ts';
import { startTestRedis } from '../support/test-redis.ts';
import { StandingStill } from './budget/standing-still.ts';

/** What a test wants otherwise. */
export interface TestClientOptions {
  sandbox?: SandboxOptions;
  /** What the client is told of the guards. */
  guards?: NonNullable<ClientParts['guards']>;
}

/** A company of the sandbox and a client for it. */
export interface TestCompany {
  company: Company;
  client: ServiceClient;
  /** Another client for the same company, as of another process. */
  sibling: ServiceClient;
  /** A client that is made otherwise. */
  newClient(facts: Partial<ClientFor & ClientParts>): ServiceClient;
  /** What has been asked of the service for this company, oldest first. */
  journal(): Promise<JournalRow[]>;
  /** Orders a fault for the company's requests. */
  fault(fault: object, times?: number, match?: object): Promise<void>;
  /** How often a new token was asked for. */
  renewals(): number;
}

/** The sandbox, a Redis and clients on it, all real; everything ends with the test file. */
export async function startTestClient(options: TestClientOptions = {}) {
  const sandbox = new TestSandbox(await createCheckedSandbox(options.sandbox));
  const redis = await startTestRedis();
  const connections = [new Redis(redis.url), new Redis(redis.url)] as const;
  const http = new HttpClient();
  afterAll(async () => {
    for (const connection of connections) connection.disconnect();
    await http.close();
    await sandbox.sandbox.close();
  });
  const { apiUrl } = sandbox.sandbox;

  function partsOn(connection: Redis): Omit<ClientParts, 'tokens'> {
    const budget = new RateBudget(connection);
    const transport = new Transport({ http, clock: new ServiceClock(), budget });
    const { guards } = options;
    return { apiUrl, transport, budget, origins: new AllowedOrigins(apiUrl), ...(guards && { guards }) };
  }
  const [parts, others] = connections.map(partsOn);
  if (parts === undefined || others === undefined) throw new Error('no connection');

  return {
    sandbox,
    parts,
    /** The budget of a process that stands still. */
    standingStill: () => new StandingStill(connections[0]),
    /** The permits that are out for a company, with how long their leases lasted when the budget was asked last, in ms. */
    async flightOf({ id }: Company): Promise<Record<string, number>> {
      const { flight, seen = 0 } = await readBudgetState(connections[0], id);
      return Object.fromEntries(Object.entries(flight).map(([name, overAt]) => [name, overAt - seen]));
    },
    async newCompany(spec: object = {}): Promise<TestCompany> {
      const company = await sandbox.company(spec);
      const { tokens, renewals } = await tokensOf(sandbox, company);
      const whose = { instanceId: randomUUID(), company: company.id };
      const newClient: TestCompany['newClient'] = (facts) =>
        createServiceClient({ ...parts, tokens, ...facts }, { ...whose, ...facts });
      return {
        company,
        client: newClient({}),
        sibling: createServiceClient({ ...others, tokens }, whose),
        newClient,
        renewals,
        journal: async () => {
          const rows = await sandbox.journal();
          return rows.filter(
            ({ company_id, path }) => company_id === company.id && !path.startsWith('/oauth'),
          );
        },
        fault: async (fault, times = 1, match = {}) => {
          await sandbox.done('faults', { match: { company_id: company.id, ...match }, fault, times });
        },
      };
    },
  };
}

/** The tokens of an install, renewed at the token route when one was rejected. */
async function tokensOf(sandbox: TestSandbox, company: Company) {
  let { access_token: current, refresh_token: refresh } = await sandbox.install(company);
  let renewals = 0;
  const tokens: AccessTokens = {
    async accessToken(_instanceId, rejected) {
      if (current === rejected) {
        renewals++;
        const response = await sandbox.refresh(refresh);
        ({ access_token: current, refresh_token: refresh } = (await response.json()) as {
          access_token: string;
          refresh_token: string;
        });
      }
      return { text: current };
    },
  };
  return { tokens, renewals: () => renewals };
}

/** The error that a call rejects with; fails the test when it is none of the family. */
export async function failureOf(call: Promise<unknown>): Promise<ServiceError> {
  const error = await call.then(
    () => new Error('the call succeeded'),
    (reason: unknown) => reason,
  );
  if (error instanceof ServiceError) return error;
  throw error;
}

import { randomUUID } from 'node:crypto';
import { Redis } from 'ioredis';
import { afterAll } from 'vitest';
import type { SandboxOptions } from '../../src/sandbox/sandbox.ts';
import type { JournalRow } from '../../src/sandbox/types.ts';
import { RateBudget } from '../../src/service/budget.ts';
import type { ServiceClient } from '../../src/service/calls.ts';
import { ServiceError } from '../../src/service/errors.ts';
import { ServiceClock } from '../../src/service/headers.ts';
import { HttpClient } from '../../src/service/http.ts';
import { AllowedOrigins } from '../../src/service/next-url.ts';
import { ServiceApi } from '../../src/service/service-api.ts';
import {
  type AccessTokens,
  type ClientFor,
  type ClientParts,
  createServiceClient,
} from '../../src/service/service-client.ts';
import { createCheckedSandbox } from '../sandbox/support/checked-sandbox.ts';
import { type Company, TestSandbox } from '../sandbox/support/test-sandbox.ts';
import { startTestRedis } from '../support/test-redis.ts';

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
    const origins = new AllowedOrigins(apiUrl);
    const api = new ServiceApi({ apiUrl, http, clock: new ServiceClock(), budget, origins });
    const { guards } = options;
    return { api, budget, ...(guards && { guards }) };
  }
  const [parts, others] = connections.map(partsOn);
  if (parts === undefined || others === undefined) throw new Error('no connection');

  return {
    sandbox,
    parts,
    http,
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
        const { body } = await sandbox.refresh(refresh);
        ({ access_token: current, refresh_token: refresh } = body);
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

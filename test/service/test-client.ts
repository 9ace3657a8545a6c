import { randomUUID } from 'node:crypto';
import { Redis } from 'ioredis';
import { afterAll } from 'vitest';
import type { SandboxOptions } from '../../src/sandbox/sandbox.ts';
import type { JournalRow } from '../../src/sandbox/types.ts';
import { RateBudget } from '../../src/service/budget.ts';
import type { ServiceClient } from '../../src/service/calls.ts';
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

interface TestClientOptions {
  sandbox?: SandboxOptions;
  /** The guards that the client knows. */
  guards?: NonNullable<ClientParts['guards']>;
}

/** A company of the sandbox and a client for it. */
export interface TestCompany {
  company: Company;
  /** A shared tag of the company. */
  tagId: string;
  client: ServiceClient;
  tokens: AccessTokens;
  /** A client of another process. */
  sibling: ServiceClient;
  newClient(facts: Partial<ClientFor & ClientParts>): ServiceClient;
  /** The company's requests to the service, oldest first. */
  journal(): Promise<JournalRow[]>;
  /** Orders a fault for the company's requests. */
  fault(fault: object, times?: number, match?: object): Promise<void>;
  /** How often the client asked for a new token. */
  renewals(): number;
}

/** Starts a sandbox, a Redis and clients, which end with the test file. */
export async function startTestClient(options: TestClientOptions = {}) {
  const sandbox = new TestSandbox(await createCheckedSandbox(options.sandbox));
  const { url } = await startTestRedis();
  const [redis, otherRedis] = [new Redis(url), new Redis(url)];
  const http = new HttpClient();
  afterAll(async () => {
    redis.disconnect();
    otherRedis.disconnect();
    await http.close();
    await sandbox.sandbox.close();
  });
  const { apiUrl } = sandbox.sandbox;

  function partsOn(connection: Redis): Omit<ClientParts, 'tokens'> {
    const budget = new RateBudget(connection);
    const origins = new AllowedOrigins(apiUrl);
    const api = new ServiceApi({ apiUrl, http, clock: new ServiceClock(), budget, origins });
    return { api, budget, ...(options.guards && { guards: options.guards }) };
  }
  const parts = partsOn(redis);
  const others = partsOn(otherRedis);

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
      const isOurs = ({ company_id, path }: JournalRow) =>
        company_id === company.id && !path.startsWith('/oauth');
      return {
        company,
        tagId: company.tags[0] ?? '',
        client: newClient({}),
        sibling: newClient(others),
        newClient,
        tokens,
        renewals,
        journal: async () => (await sandbox.journal()).filter(isOurs),
        fault: async (fault, times = 1, match = {}) => {
          await sandbox.done('faults', { match: { company_id: company.id, ...match }, fault, times });
        },
      };
    },
  };
}

/** The tokens of an install. The token route refreshes them after one was rejected. */
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

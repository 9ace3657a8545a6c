import type { TestProject } from 'vitest/node';
import { startPostgresServer } from './postgres-server.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** Of a superuser of the one PostgreSQL that all test files make their databases in. */
    postgresUrl: string;
  }
}

/** Provides the PostgreSQL that `TEST_POSTGRES_URL` names, or one for this run. */
export default async function setup(project: TestProject): Promise<(() => Promise<void>) | undefined> {
  const given = process.env.TEST_POSTGRES_URL;
  if (given) {
    project.provide('postgresUrl', given);
    return undefined;
  }
  const server = await startPostgresServer();
  project.provide('postgresUrl', server.url);
  return () => server.close();
}

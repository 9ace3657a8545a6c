import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { type PostgresServer, runStatement, startPostgresServer } from '../../support/postgres-server.ts';

/** The databases that the app runs on. */
export const DATABASES = ['sqlite', 'postgres'] as const;
export type DatabaseKind = (typeof DATABASES)[number];

/** How often statistics are brought up to date: the tests' server has no autovacuum. */
const VACUUM_EVERY_MS = 15_000;

/** Which databases a command asks for; `otherwise` when it names none. */
export function askedDatabases(
  rows: readonly string[],
  otherwise: readonly DatabaseKind[],
): readonly DatabaseKind[] {
  const asked = DATABASES.filter((kind) => rows.includes(kind));
  return asked.length > 0 ? asked : otherwise;
}

/** Where empty databases of one kind come from. */
export class BenchDatabases {
  readonly kind: DatabaseKind;
  readonly #server: PostgresServer | undefined;

  private constructor(kind: DatabaseKind, server: PostgresServer | undefined) {
    this.kind = kind;
    this.#server = server;
  }

  static async start(kind: DatabaseKind): Promise<BenchDatabases> {
    return new BenchDatabases(kind, kind === 'postgres' ? await startPostgresServer() : undefined);
  }

  /** @param dir where a file may lie; it goes with it @returns the URL of an empty database */
  async create(dir: string): Promise<string> {
    const name = `bench_${randomBytes(6).toString('hex')}`;
    if (this.#server === undefined) return `file:${join(dir, `${name}.db`)}`;
    await runStatement(this.#server.url, `create database ${name}`);
    const url = new URL(this.#server.url);
    url.pathname = `/${name}`;
    return url.href;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server?.close();
  }
}

/** What a server's autovacuum does, now and then, while a bench runs. @returns ends it */
export function keepVacuumed(url: string): () => void {
  if (!url.startsWith('postgres:')) return () => undefined;
  const timer = setInterval(() => vacuum(url).catch(() => undefined), VACUUM_EVERY_MS);
  return () => clearInterval(timer);
}

/** Brings what a planner knows of the tables up to date. */
export async function vacuum(url: string): Promise<void> {
  if (url.startsWith('postgres:')) await runStatement(url, 'vacuum analyze');
}

import { type ChildProcessByStdio, execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { Client } from 'pg';
import { findFreePort } from './free-port.ts';
import { findPostgresBinaries, giveToPostgres, POSTGRES_USER } from './postgres-binaries.ts';
import { waitFor } from './wait-for.ts';

/** A database is some three hundred files: in memory they are made in a tenth of the time that some disks take. */
const IN_MEMORY = '/dev/shm';

/** Containers often have 64 MB there, which is not enough. */
const ENOUGH_MEMORY_BYTES = 4 * 1024 ** 3;

/** The order of text is that of its bytes. */
const INIT_OPTIONS = ['-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--locale=C', '--no-sync'];

/** Its data outlive the server, and need not outlive the machine. */
const SETTINGS = {
  fsync: 'off',
  full_page_writes: 'off',
  autovacuum: 'off',
  max_connections: '300',
  listen_addresses: '127.0.0.1',
  unix_socket_directories: '',
  log_min_messages: 'log',
};

/** How long it may take to stop before it is killed. */
const STOP_LIMIT_MS = 10_000;

/**
 * Reads which process is at work, or an empty line when none is, and at the end of its input ends that one and removes
 * the directories. The input ends with the process that writes it: no server outlives its tests, whatever has ended them.
 */
const WATCH = `
while read -r line; do pid=$line; done
[ -n "$pid" ] && kill -INT "$pid"
i=0; while [ $i -lt 100 ] && [ -n "$pid" ] && kill -0 "$pid"; do sleep 0.1; i=$((i + 1)); done
rm -rf "$@"
`;

/** A PostgreSQL that can be treated as a machine can: it dies, and comes back at its address. */
export interface PostgresServer {
  /** Of its superuser, in the database `postgres`. */
  url: string;
  /** Its disk is full from now on: the operating system lets none of its processes write a file. */
  fillDisk(): void;
  /** Stops it in order, which breaks off all connections. */
  stop(): Promise<void>;
  /** Starts it again, at the same port, with its data. */
  start(): Promise<void>;
  /** Stops it for good, and removes its data. */
  close(): Promise<void>;
}

/**
 * Starts an empty PostgreSQL, with the programs that npm has installed.
 *
 * @param more settings by name, in place of those of the tests
 * @throws Error with what it said when it does not start
 */
export async function startPostgresServer(
  more: Readonly<Record<string, string>> = {},
): Promise<PostgresServer> {
  const dir = makeDir(tmpdir());
  const data = makeDir(hasMemory() ? IN_MEMORY : tmpdir());
  const watcher = spawn('sh', ['-c', WATCH, 'watch', dir, data], {
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  watcher.stdin.on('error', () => undefined);
  const launch = (program: string, args: string[]): Program => {
    const child = spawn(program, args, {
      cwd: dir,
      // In a group of its own: Ctrl-C must not end it before the tests have finished with it.
      detached: true,
      env: { PATH: process.env.PATH, TZ: 'UTC' },
      stdio: ['ignore', 'ignore', 'pipe'],
      ...POSTGRES_USER,
    });
    watcher.stdin.write(`${child.pid}\n`);
    return child.once('close', () => watcher.stdin.write('\n'));
  };
  const port = await findFreePort();
  const url = `postgres://postgres@127.0.0.1:${port}/postgres`;
  let server: Program | undefined;

  const stop = async () => {
    if (server === undefined || hasEnded(server)) return;
    const closed = once(server, 'close');
    server.kill('SIGINT');
    const killer = setTimeout(() => server?.kill('SIGKILL'), STOP_LIMIT_MS);
    await closed;
    clearTimeout(killer);
  };
  const fillDisk = () => {
    const pid = String(server?.pid);
    const children = execFileSync('ps', ['-o', 'pid=', '--ppid', pid], { encoding: 'utf8' });
    for (const one of [pid, ...children.split(/\s+/).filter(Boolean)]) {
      // One that has ended meanwhile writes nothing, either.
      spawnSync('prlimit', ['--pid', one, '--fsize=1:unlimited'], POSTGRES_USER);
    }
  };
  const close = async () => {
    await stop();
    watcher.stdin.end();
    await once(watcher, 'close');
  };
  try {
    const bin = findPostgresBinaries(dir);
    const start = async () => {
      const settings = Object.entries({ ...SETTINGS, ...more, port: String(port) });
      const args = settings.flatMap(([name, value]) => ['-c', `${name}=${value}`]);
      const child = launch(join(bin, 'postgres'), ['-D', data, ...args]);
      server = child;
      const said = text(child.stderr);
      await waitFor(() => hasEnded(child) || answers(url), 'PostgreSQL');
      if (hasEnded(child)) throw new Error(`PostgreSQL did not start:\n${await said}`);
    };
    await succeed(launch(join(bin, 'initdb'), ['-D', data, ...INIT_OPTIONS]));
    await start();
    return { url, fillDisk, stop, start, close };
  } catch (error) {
    await close();
    throw error;
  }
}

type Program = ChildProcessByStdio<null, null, Readable>;

/** Programs cannot always be run where the memory is: they have a directory of their own. */
function makeDir(place: string): string {
  const dir = mkdtempSync(join(place, 'partner-app-postgres-'));
  giveToPostgres(dir);
  return dir;
}

function hasMemory(): boolean {
  if (!existsSync(IN_MEMORY)) return false;
  const { bavail, bsize } = statfsSync(IN_MEMORY);
  return bavail * bsize >= ENOUGH_MEMORY_BYTES;
}

async function succeed(program: Program): Promise<void> {
  const [said, [code]] = await Promise.all([text(program.stderr), once(program, 'close')]);
  if (code !== 0) throw new Error(`No data for PostgreSQL could be made:\n${said}`);
}

function hasEnded({ exitCode, signalCode }: Program): boolean {
  return exitCode !== null || signalCode !== null;
}

async function answers(url: string): Promise<true> {
  const client = new Client(url).on('error', () => undefined);
  try {
    await client.connect();
  } finally {
    await client.end();
  }
  return true;
}

/** Runs one statement by a connection of its own. */
export async function runStatement(url: string, statement: string): Promise<void> {
  const client = new Client(url);
  await client.connect();
  try {
    await client.query(statement);
  } finally {
    await client.end();
  }
}

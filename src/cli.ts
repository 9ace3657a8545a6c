import { resolve } from 'node:path';
import { type ParseArgsConfig, parseArgs } from 'node:util';
import { reencryptSummary, reencryptTokens } from './auth/reencrypt.ts';
import { TokenCipher } from './auth/token-cipher.ts';
import { type Boot, boot } from './boot.ts';
import type { EventSender } from './changes/app-events.ts';
import { HANDLER_CONSUMER } from './changes/handler-consumer.ts';
import { type Config, DEFAULT_DATA_DIR, readEnvironment } from './config/config.ts';
import { withNewTokenKey } from './config/secrets.ts';
import { ConfigError, type ProcessKind } from './config/variables.ts';
import type { Logger } from './runtime/logging.ts';
import { INTERRUPTED_CODE } from './runtime/shutdown.ts';
import { backUp, restore } from './store/backup.ts';
import type { Database } from './store/database.ts';
import type { Instance } from './store/instances.ts';
import { isFileUrl, openDatabase, openExistingDatabase } from './store/open-database.ts';
import { idJson, idsOfTyped } from './store/page-items.ts';
import type { ListStatus } from './store/runs.ts';
import { keepSetting } from './store/settings.ts';
import { openStores, type Stores } from './store/stores.ts';

/** What a command works with. */
interface Context {
  db: Database;
  config: Config;
  /** The database as a message names it, without a password. */
  database: string;
  logger: Logger;
  /** Loads the integrator's event handler. */
  loadEvents: () => Promise<EventSender>;
  /** Aborted by a signal: the command ends after the step that is under way. */
  signal: AbortSignal;
}

interface Command {
  /** What follows `npm run NAME --`. */
  usage: string;
  /** The fewest and the most positional arguments. */
  positionals: readonly [number, number];
  options?: ParseArgsConfig['options'];
  run(positionals: string[], options: Record<string, unknown>): Promise<void>;
}

const PASSWORD_HINT = 'Give the password in PGPASSWORD or ~/.pgpass.';

const COMMANDS: Record<string, Command> = {
  migrate: {
    usage: '',
    positionals: [0, 0],
    run: () => onDatabase(migrate, { open: (url) => openDatabase(url, { migrates: true }) }),
  },
  keys: { usage: '', positionals: [0, 0], run: makeKey },
  reencrypt: { usage: '', positionals: [0, 0], run: () => onDatabase(reencrypt, { kind: 'reencrypt' }) },
  disconnect: {
    usage: 'INSTANCE_ID [--delete-data]',
    positionals: [1, 1],
    options: { 'delete-data': { type: 'boolean' } },
    run: ([id = ''], options) =>
      onDatabase((context) => disconnect(context, id, options['delete-data'] === true)),
  },
  replay: {
    usage: 'INSTANCE_ID [RESOURCE [RECORD_ID]]',
    positionals: [1, 3],
    run: ([id = '', resource, record]) => onDatabase((context) => replay(context, id, resource, record)),
  },
  erase: {
    usage: 'INSTANCE_ID RESOURCE RECORD_ID',
    positionals: [3, 3],
    run: ([id = '', resource = '', record = '']) =>
      onDatabase((context) => erase(context, id, resource, record)),
  },
  backup: { usage: 'FILE', positionals: [1, 1], run: ([file = '']) => onFile(makeBackup, file) },
  restore: { usage: 'FILE', positionals: [1, 1], run: ([file = '']) => onFile(restoreBackup, file) },
};

async function migrate(): Promise<number> {
  print("The database has this version's schema.");
  return 0;
}

async function makeKey(): Promise<void> {
  try {
    const { value, id, olderIds } = withNewTokenKey(readEnvironment(), DEFAULT_DATA_DIR, Date.now());
    // Only the value goes to the standard output, so that it can be piped to where secrets are kept.
    print(`TOKEN_KEYS=${value}`);
    const older = olderIds.map((olderId) => `"${olderId}"`).join(', ');
    const next =
      olderIds.length === 0
        ? 'This is a first key. Keep a copy of it away from the database: without it, every company has to install again.'
        : `Give this value to every process and restart them. From then on "${id}" encrypts, and ${older} still decrypt. Then run: npm run reencrypt`;
    process.stderr.write(`\n${next}\n`);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    process.stderr.write(`${error.message}\n`);
    process.exitCode = 1;
  }
}

async function reencrypt({ db, config, database, signal }: Context): Promise<number> {
  const cipher = new TokenCipher(config.tokenKeys);
  await cipher.proveKeys((name, value) => keepSetting(db, name, value));
  print(`Encrypting all tokens of ${database} under the key "${cipher.keyId}".`);
  const report = await reencryptTokens(
    { store: openStores(db).tokens, cipher },
    { signal, onBatch: (checked) => print(`  ${checked} instances checked`) },
  );
  print(reencryptSummary(report, cipher));
  return report.isDone && report.unreadable.length === 0 ? 0 : 1;
}

async function disconnect(context: Context, id: string, deleteData: boolean): Promise<number> {
  const { tokens, removals, actions } = openStores(context.db);
  const events = await context.loadEvents();
  const instance = await findInstance(context, id);
  print(`Disconnecting ${nameOf(instance)} (${id}) of ${context.database}.`);
  await tokens.disconnect(id, { deleteData });
  await actions.add({
    instanceId: id,
    resource: null,
    record: null,
    action: deleteData ? 'disconnect and delete data' : 'disconnect',
    by: 'command',
  });
  print('It is disconnected, and its tokens are deleted.');
  if (deleteData) {
    await removals.finish(id, context.signal);
    print(
      context.signal.aborted
        ? 'Some of its copied data is left: the workers delete it, or run this again.'
        : 'Its copied data is deleted.',
    );
  }
  context.logger.info({ instanceId: id, dataDeleted: deleteData }, 'the instance is disconnected');
  const { company_id: companyId, name: company } = instance;
  events.send({ type: 'disconnected', instanceId: id, companyId, company, dataDeleted: deleteData });
  return 0;
}

async function replay(context: Context, id: string, resource?: string, record?: string): Promise<number> {
  const { changes, actions, ...stores } = openStores(context.db);
  const instance = await findInstance(context, id);
  const lists = await findLists(stores, instance, resource);
  const names = lists.map((list) => list.resource).join(', ');
  let known: string | null = null;
  if (record === undefined) {
    for (const list of lists) await changes.replayList(list.id, HANDLER_CONSUMER);
  } else {
    known = await findRecord(instance, names, record, (of) => changes.replayRecord(lists[0].id, of));
  }
  // As the copy knows the record, so that its erasure finds it.
  const noted = { resource: resource ?? null, record: known };
  await actions.add({ instanceId: id, ...noted, action: 'replay', by: 'command' });
  const what = known === null ? names : `${idJson(known)} of ${names}`;
  print(`The handler, if there is one, gets ${what} of ${nameOf(instance)} again.`);
  print(deliveryBegins(instance));
  return 0;
}

async function erase(context: Context, id: string, resource: string, record: string): Promise<number> {
  const { erasure, actions, ...stores } = openStores(context.db);
  const instance = await findInstance(context, id);
  const [list] = await findLists(stores, instance, resource);
  const known = await findRecord(instance, resource, record, (of) => erasure.erase(list.id, of, Date.now()));
  await actions.add({ instanceId: id, resource, record: null, action: 'erase', by: 'command' });
  print(`${idJson(known)} of ${resource} of ${nameOf(instance)} is erased, and kept out of the copy.`);
  await erasure.purge();
  print(`The handler, if there is one, is told that it is deleted. ${deliveryBegins(instance)}`);
  return 0;
}

/** @throws Error that names what to run on PostgreSQL: a timer must notice that nothing is backed up */
async function makeBackup({ databaseUrl }: Config, file: string): Promise<void> {
  if (!isFileUrl(databaseUrl)) {
    const url = quoted(withoutPassword(databaseUrl));
    throw new Error(`Nothing was backed up, because this command backs up SQLite only. For PostgreSQL, run:

  (umask 077 && pg_dump --format=custom --file=${quoted(file)} ${url})

${PASSWORD_HINT}`);
  }
  await backUp(databaseUrl, file);
  print(`The database is backed up in ${file}. Keep TOKEN_KEYS in another place.`);
}

async function restoreBackup({ databaseUrl }: Config, file: string): Promise<void> {
  if (!isFileUrl(databaseUrl)) {
    const url = quoted(withoutPassword(databaseUrl));
    throw new Error(`Nothing was restored, because this command restores SQLite only.
For PostgreSQL, stop the web app and the workers, then run:

  pg_restore --clean --if-exists --single-transaction --dbname=${url} ${quoted(file)}
  psql ${url} --command="delete from settings where name = 'installation_id'"

The second line makes the app ignore older jobs in Redis. ${PASSWORD_HINT}`);
  }
  const previous = await restore(databaseUrl, file, Date.now());
  print(`${withoutPassword(databaseUrl)} is restored from ${file}.`);
  if (previous !== undefined)
    print(`The previous database is ${previous}. It holds tokens: delete it when all is well.`);
  print('Start the app.');
}

/** The lists of an instance, or the one of a resource. @throws Error when there is none */
async function findLists(
  { runs }: Pick<Stores, 'runs'>,
  instance: Instance,
  resource?: string,
): Promise<[ListStatus, ...ListStatus[]]> {
  const all = await runs.lists(instance.id);
  const [first, ...others] = all.filter((list) => resource === undefined || list.resource === resource);
  if (first !== undefined) return [first, ...others];
  const names = all.map((list) => list.resource).join(', ') || 'none yet';
  const what = resource === undefined ? 'no list' : `no list "${resource}"`;
  throw new Error(`${nameOf(instance)} has ${what}; its lists: ${names}. Nothing was done.`);
}

/**
 * Does something to the record that somebody means.
 *
 * @param act answers whether there is such a record
 * @returns what the copy knows it by
 */
async function findRecord(
  instance: Instance,
  resource: string,
  typed: string,
  act: (id: string) => Promise<boolean>,
): Promise<string> {
  for (const id of idsOfTyped(typed)) if (await act(id)) return id;
  throw new Error(`There is no record ${typed} in ${resource} of ${nameOf(instance)}. Nothing was done.`);
}

function deliveryBegins({ status }: Instance): string {
  return status === 'active'
    ? 'A running worker begins within half a minute.'
    : `The company is ${status}: the workers begin when it is active again.`;
}

async function findInstance({ db, database }: Context, id: string): Promise<Instance> {
  const instance = await openStores(db).instances.find(id);
  if (instance !== undefined) return instance;
  throw new Error(`There is no instance ${id} in ${database}: /ops shows them. Nothing was done.`);
}

/** The service chose the name: a terminal would obey control characters. */
function nameOf({ name }: Instance): string {
  return name.replaceAll(/\p{C}/gu, '?');
}

/** Opens the database, and runs a command on it. */
function onDatabase(
  run: (context: Context) => Promise<number>,
  {
    open = openExistingDatabase,
    kind = 'database',
  }: { open?: (url: string) => Promise<Database>; kind?: ProcessKind } = {},
): Promise<void> {
  return inProcess(kind, async ({ config, logger, loadEvents }, signal) => {
    const db = await open(config.databaseUrl);
    try {
      const database = withoutPassword(config.databaseUrl);
      return await run({ db, config, logger, loadEvents, database, signal });
    } finally {
      await db.destroy();
    }
  });
}

/** Runs a command on the file that it names. */
function onFile(run: (config: Config, file: string) => Promise<void>, file: string): Promise<void> {
  return inProcess('database', async ({ config }) => {
    await run(config, resolve(file));
    return 0;
  });
}

/** Runs a command, and ends the process with the code that it returns. */
async function inProcess(
  kind: ProcessKind,
  run: (boot: Boot, signal: AbortSignal) => Promise<number>,
): Promise<void> {
  const work = async (booted: Boot) => {
    const stopping = new AbortController();
    const running = run(booted, stopping.signal);
    booted.shutdown.add('work', async () => {
      stopping.abort();
      await running.catch(() => undefined);
    });
    await booted.shutdown.stop('the work is over', await running);
  };
  await boot(kind, work, { takesArguments: true, signalCode: INTERRUPTED_CODE });
}

/** What `psql` understands, too: parameters of the driver alone are left out. */
function withoutPassword(databaseUrl: string): string {
  if (isFileUrl(databaseUrl)) return databaseUrl;
  const url = new URL(databaseUrl);
  url.password = '';
  for (const name of [...url.searchParams.keys()]) {
    if (!/^(host|port|ssl(mode|cert|key|rootcert))$/.test(name)) url.searchParams.delete(name);
  }
  return url.href;
}

/** For a shell. */
function quoted(argument: string): string {
  return `'${argument.replaceAll("'", "'\\''")}'`;
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

function endWithUsage(problem: string, usage: string): never {
  process.stderr.write(`${problem} Nothing was done. Usage: ${usage}\n`);
  process.exit(2);
}

function readCommand(): { command: Command; positionals: string[]; options: Record<string, unknown> } {
  const [name = '', ...args] = process.argv.slice(2);
  const command = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
  if (command === undefined) {
    return endWithUsage(`There is no command "${name}".`, `npm run ${Object.keys(COMMANDS).join('|')}`);
  }
  const usage = `npm run ${name}${command.usage && ` -- ${command.usage}`}`;
  try {
    const { options = {} } = command;
    const { values, positionals } = parseArgs({ args, options, allowPositionals: true });
    const [fewest, most] = command.positionals;
    if (positionals.length < fewest) throw new Error('An argument is missing.');
    if (positionals.length > most) throw new Error(`"${positionals[most]}" is one argument too many.`);
    // Without the two dashes npm takes an option for a setting of its own.
    const kept = Object.keys(options).find(
      (option) => process.env[`npm_config_${option.replaceAll('-', '_')}`] !== undefined,
    );
    if (kept !== undefined) throw new Error(`npm has kept --${kept} for itself.`);
    return { command, positionals, options: values };
  } catch (error) {
    return endWithUsage((error as Error).message, usage);
  }
}

const { command, positionals, options } = readCommand();
await command.run(positionals, options);

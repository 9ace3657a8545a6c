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
import { backUp, restore } from './store/backup.ts';
import type { Database } from './store/database.ts';
import type { Instance } from './store/instances.ts';
import { isFileUrl, openDatabase, openExistingDatabase } from './store/open-database.ts';
import { idJson, idsOfTyped } from './store/page-items.ts';
import type { ListStatus } from './store/runs.ts';
import { keepSetting } from './store/settings.ts';
import { openStores, type Stores } from './store/stores.ts';

interface Context {
  db: Database;
  config: Config;
  /** `DATABASE_URL` without its password, for messages. */
  database: string;
  logger: Logger;
  /** Loads the integrator's event handler. */
  loadEvents: () => Promise<EventSender>;
  /** Aborts on a signal. The command then ends after its present step. */
  signal: AbortSignal;
}

interface Command {
  /** The arguments after `npm run NAME --`, the optional ones in brackets. */
  usage: string;
  options?: ParseArgsConfig['options'];
  run(positionals: string[], options: Record<string, unknown>): Promise<void>;
}

const PASSWORD_HINT = 'Give the password in PGPASSWORD or ~/.pgpass.';

const COMMANDS: Record<string, Command> = {
  migrate: {
    usage: '',
    run: () =>
      onDatabase(async () => print("The database has this version's schema."), {
        open: (url) => openDatabase(url, { migrates: true }),
      }),
  },
  keys: { usage: '', run: makeKey },
  reencrypt: { usage: '', run: () => onDatabase(reencrypt, { kind: 'reencrypt' }) },
  disconnect: {
    usage: 'INSTANCE_ID [--delete-data]',
    options: { 'delete-data': { type: 'boolean' } },
    run: ([id = ''], options) =>
      onDatabase((context) => disconnect(context, id, options['delete-data'] === true)),
  },
  replay: {
    usage: 'INSTANCE_ID [RESOURCE [RECORD_ID]]',
    run: ([id = '', resource, record]) => onDatabase((context) => replay(context, id, resource, record)),
  },
  erase: {
    usage: 'INSTANCE_ID RESOURCE RECORD_ID',
    run: ([id = '', resource = '', record = '']) =>
      onDatabase((context) => erase(context, id, resource, record)),
  },
  backup: { usage: 'FILE', run: ([file = '']) => onFile(makeBackup, file) },
  restore: { usage: 'FILE', run: ([file = '']) => onFile(restoreBackup, file) },
};

async function makeKey(): Promise<void> {
  try {
    const { value, id, olderIds } = withNewTokenKey(readEnvironment(), DEFAULT_DATA_DIR, Date.now());
    // The standard output has only the value, so that you can pipe it into a store of secrets.
    print(`TOKEN_KEYS=${value}`);
    const older = olderIds.map((olderId) => `"${olderId}"`).join(', ');
    const next =
      olderIds.length === 0
        ? 'This is your first key. Keep a copy away from the database. Without the key, every company has to install the app again.'
        : `Restart every process with this value. The new key "${id}" encrypts, and ${older} still decrypt. Then run: npm run reencrypt`;
    process.stderr.write(`\n${next}\n`);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    process.stderr.write(`${error.message}\n`);
    process.exitCode = 1;
  }
}

async function reencrypt({ db, config, database, signal }: Context): Promise<void> {
  const cipher = new TokenCipher(config.tokenKeys);
  await cipher.proveKeys((name, value) => keepSetting(db, name, value));
  print(`Encrypting all tokens of ${database} under the key "${cipher.keyId}".`);
  const report = await reencryptTokens(
    { store: openStores(db).tokens, cipher },
    { signal, onBatch: (checked) => print(`  ${checked} instances checked`) },
  );
  const summary = reencryptSummary(report, cipher);
  if (!report.isDone || report.unreadable.length > 0) throw new Error(summary);
  print(summary);
}

async function disconnect(context: Context, id: string, deleteData: boolean): Promise<void> {
  const { tokens, removals, actions } = openStores(context.db);
  const events = await context.loadEvents();
  const instance = await findInstance(context, id);
  print(`Disconnecting ${nameOf(instance)} (${id}) of ${context.database}.`);
  await tokens.disconnect(id, { deleteData });
  const action = deleteData ? 'disconnect and delete data' : 'disconnect';
  await actions.add({ instanceId: id, resource: null, record: null, action, by: 'command' });
  print('It is disconnected, and its tokens are deleted.');
  if (deleteData) {
    await removals.finish(id, context.signal);
    print(
      context.signal.aborted
        ? 'Some copied data is left. The workers delete it, or you run this again.'
        : 'Its copied data is deleted.',
    );
  }
  context.logger.info({ instanceId: id, dataDeleted: deleteData }, 'the instance is disconnected');
  const { company_id: companyId, name: company } = instance;
  events.send({ type: 'disconnected', instanceId: id, companyId, company, dataDeleted: deleteData });
}

async function replay(context: Context, id: string, resource?: string, record?: string): Promise<void> {
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
  // The action keeps the id as the copy has it, so that an erasure finds it.
  const target = { instanceId: id, resource: resource ?? null, record: known };
  await actions.add({ ...target, action: 'replay', by: 'command' });
  const what = known === null ? names : `${idJson(known)} of ${names}`;
  print(`Your handler, if you have one, gets ${what} of ${nameOf(instance)} again.`);
  print(deliveryBegins(instance));
}

async function erase(context: Context, id: string, resource: string, record: string): Promise<void> {
  const { erasure, actions, ...stores } = openStores(context.db);
  const instance = await findInstance(context, id);
  const [list] = await findLists(stores, instance, resource);
  const known = await findRecord(instance, resource, record, (of) => erasure.erase(list.id, of, Date.now()));
  await actions.add({ instanceId: id, resource, record: null, action: 'erase', by: 'command' });
  print(`${idJson(known)} of ${resource} of ${nameOf(instance)} is erased. Later runs do not copy it again.`);
  await erasure.purge();
  print(`Your handler, if you have one, gets "deleted". ${deliveryBegins(instance)}`);
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

/** Finds the lists of an instance, or the list of one resource. @throws Error when there is none */
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
 * Acts on a record by its typed id, which can mean a string or an integer.
 *
 * @param act resolves to whether the record exists
 * @returns the id as the copy has it
 * @throws Error when there is no such record
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
    : `The company is ${status}. The workers begin when it is active again.`;
}

async function findInstance({ db, database }: Context, id: string): Promise<Instance> {
  const instance = await openStores(db).instances.find(id);
  if (instance !== undefined) return instance;
  throw new Error(`There is no instance ${id} in ${database}. /ops shows all ids. Nothing was done.`);
}

/** Replaces control characters: the name comes from the service, and terminals obey them. */
function nameOf({ name }: Instance): string {
  return name.replaceAll(/\p{C}/gu, '?');
}

/** Runs a command on the database. */
function onDatabase(
  run: (context: Context) => Promise<void>,
  {
    open = openExistingDatabase,
    kind = 'database',
  }: { open?: (url: string) => Promise<Database>; kind?: ProcessKind } = {},
): Promise<void> {
  return inProcess(kind, async ({ config, logger, loadEvents }, signal) => {
    const db = await open(config.databaseUrl);
    try {
      const database = withoutPassword(config.databaseUrl);
      await run({ db, config, logger, loadEvents, database, signal });
    } finally {
      await db.destroy();
    }
  });
}

/** Runs a command on a file. */
function onFile(run: (config: Config, file: string) => Promise<void>, file: string): Promise<void> {
  return inProcess('database', ({ config }) => run(config, resolve(file)));
}

/** Runs a command, and ends the process: with code 1 if the command throws. */
async function inProcess(
  kind: ProcessKind,
  run: (boot: Boot, signal: AbortSignal) => Promise<void>,
): Promise<void> {
  const work = async (booted: Boot) => {
    const stopping = new AbortController();
    const running = run(booted, stopping.signal);
    booted.shutdown.add('command', async () => {
      stopping.abort();
      await running.catch(() => undefined);
    });
    await running;
    await booted.shutdown.stop('the command is over');
  };
  await boot(kind, work, { isCommand: true });
}

/** Leaves out parameters that only the driver understands, as people give this URL to `psql`. */
function withoutPassword(databaseUrl: string): string {
  if (isFileUrl(databaseUrl)) return databaseUrl;
  const url = new URL(databaseUrl);
  url.password = '';
  for (const name of [...url.searchParams.keys()]) {
    if (!/^(host|port|ssl(mode|cert|key|rootcert))$/.test(name)) url.searchParams.delete(name);
  }
  return url.href;
}

/** Quotes an argument for a shell. */
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
    const names = command.usage.split(' ').filter((name) => /^\[?[A-Z]/.test(name));
    const required = names.filter((name) => !name.startsWith('['));
    if (positionals.length < required.length) throw new Error('An argument is missing.');
    const extra = positionals[names.length];
    if (extra !== undefined) throw new Error(`"${extra}" is one argument too many.`);
    // Without " -- ", npm reads an option as its own setting.
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

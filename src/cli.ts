import { resolve } from 'node:path';
import { type ParseArgsConfig, parseArgs } from 'node:util';
import { reencryptSummary, reencryptTokens } from './auth/reencrypt.ts';
import { TokenCipher } from './auth/token-cipher.ts';
import { type Boot, boot } from './boot.ts';
import { hashKey } from './changes/collect-writes.ts';
import { type Config, readEnvironment } from './config/config.ts';
import { withNewTokenKey } from './config/secrets.ts';
import { ConfigError, type ProcessKind } from './config/variables.ts';
import { RESOURCES } from './integration/resources.ts';
import type { Logger } from './runtime/logging.ts';
import { AFTER_RESTORE, backUp, restore } from './store/backup.ts';
import { HANDLER_CONSUMER } from './store/changes.ts';
import type { Database } from './store/database.ts';
import type { Instance } from './store/instances.ts';
import { isFileUrl, keepSetting, openDatabase, openExistingDatabase } from './store/open-database.ts';
import { idJson, idsOfTyped } from './store/page-items.ts';
import type { ListStatus } from './store/runs.ts';
import { openStores, type Stores } from './store/stores.ts';

interface Context {
  db: Database;
  config: Config;
  /** `DATABASE_URL` without its password, for messages. */
  database: string;
  logger: Logger;
  loadEvents: Boot['loadEvents'];
  /** Aborts on a signal. The command then ends after its present step. */
  signal: AbortSignal;
}

interface Command {
  /** The arguments after `npm run NAME --`, the optional ones in brackets. */
  usage: string;
  options?: ParseArgsConfig['options'];
  run(positionals: string[], options: Record<string, unknown>): Promise<void>;
}

const WRITES_LISTED = 1_000;
const FINISHED_LISTED = 20;

const PASSWORD_HINT = 'Give the password in PGPASSWORD or ~/.pgpass.';

const settings = () => import('./integration/settings.ts');

const COMMANDS: Record<string, Command> = {
  migrate: { usage: '', run: () => inProcess('database', migrate) },
  keys: { usage: '', run: makeKey },
  reencrypt: { usage: '', run: () => onDatabase(reencrypt, 'reencrypt') },
  disconnect: {
    usage: 'INSTANCE_ID [--delete-data]',
    options: { 'delete-data': { type: 'boolean' } },
    run: ([id = ''], options) =>
      onDatabase((context) => disconnect(context, id, options['delete-data'] === true), 'database', settings),
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
  outbox: {
    usage: 'INSTANCE_ID [retry|discard KEY]',
    run: ([id = '', decision, key = '']) =>
      onDatabase((context) =>
        decision === undefined ? listWrites(context, id) : resolveWrite(context, id, decision, key),
      ),
  },
  backup: { usage: 'FILE', run: ([file = '']) => onFile(makeBackup, file) },
  restore: { usage: 'FILE', run: ([file = '']) => onFile(restoreBackup, file) },
};

async function migrate({ config }: Boot): Promise<void> {
  const db = await openDatabase(config.databaseUrl, { migrates: true });
  print("The database has this version's schema.");
  await db.destroy();
}

async function makeKey(): Promise<void> {
  try {
    const { value, id, olderIds } = withNewTokenKey(readEnvironment(), Date.now());
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
  const { tokens, removals, erasure, actions } = openStores(context.db);
  const events = await context.loadEvents(() => import('./integration/events.ts'));
  const instance = await findInstance(context, id);
  print(`Disconnecting ${nameOf(instance)} (${id}) of ${context.database}.`);
  const writesDiscarded = (await tokens.disconnect(id, { deleteData })) ?? 0;
  const action = deleteData ? 'disconnect and delete data' : 'disconnect';
  await actions.add({ instanceId: id, resource: null, record: null, action, by: 'command' });
  print('It is disconnected, and its tokens are deleted.');
  if (writesDiscarded > 0) print(discardedText(writesDiscarded, 'to the service'));
  if (deleteData) {
    await removals.finish(id, context.signal);
    await erasure.purge();
    print(
      context.signal.aborted
        ? 'Some copied data is left. The workers delete it, or you run this again.'
        : 'Its copied data is deleted.',
    );
  }
  const facts = { dataDeleted: deleteData, writesDiscarded };
  context.logger.info({ instanceId: id, ...facts }, 'the instance is disconnected');
  const { company_id: companyId, name: company } = instance;
  events.send({ type: 'disconnected', instanceId: id, companyId, company, ...facts });
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
  const { route } = RESOURCES.find(({ name }) => name === resource) ?? {};
  let discarded: number | undefined;
  const known = await findRecord(instance, resource, record, async (of) => {
    discarded = await erasure.erase(list.id, of, Date.now(), route);
    return discarded !== undefined;
  });
  await actions.add({ instanceId: id, resource, record: null, action: 'erase', by: 'command' });
  print(`${idJson(known)} of ${resource} of ${nameOf(instance)} is erased. Later runs do not copy it again.`);
  if (discarded) print(discardedText(discarded, 'to it'));
  await erasure.purge();
  print(`Your handler, if you have one, gets "deleted". ${deliveryBegins(instance)}`);
}

function discardedText(count: number, where: string): string {
  return count === 1
    ? `1 write ${where} that waited is discarded.`
    : `${count} writes ${where} that waited are discarded.`;
}

/** Prints the writes that are not finished, and the last that are. */
async function listWrites(context: Context, id: string): Promise<void> {
  const { outbox } = openStores(context.db);
  const instance = await findInstance(context, id);
  const { discarded: _, ...counts } = await outbox.counts(id);
  const open = Object.entries(counts).map(([state, count]) => `${count} ${state}`);
  print(`Writes of ${nameOf(instance)}: ${open.join(', ')}.`);
  const unfinished = await outbox.unfinished(id, { limit: WRITES_LISTED, forPeople: false });
  for (const write of [...unfinished, ...(await outbox.finished(id, FINISHED_LISTED))]) {
    const { state, operation, object, key, attempts, status, answer_id, created_at, error, not_before } =
      write;
    const next =
      state === 'pending' && not_before > Date.now()
        ? [`again at ${new Date(not_before).toISOString()}`]
        : [];
    const answer =
      status === null ? [] : [`answer ${status}${answer_id === null ? '' : ` ${printable(answer_id)}`}`];
    const facts = [`tried ${attempts} times`, ...answer, ...next].join(', ');
    print(`${state.padEnd(9)} ${printable(key ?? '')}  ${operation} ${printable(object ?? '')}`);
    print(
      `          ${new Date(created_at).toISOString()}, ${facts}${error === null ? '' : `: ${printable(error)}`}`,
    );
  }
}

/** @throws Error that says why nothing can be done */
async function resolveWrite(context: Context, id: string, decision: string, key: string): Promise<void> {
  const { outbox, actions } = openStores(context.db);
  const instance = await findInstance(context, id);
  if (key === '' || (decision !== 'retry' && decision !== 'discard')) {
    throw new Error('Name what to do, and the key: retry KEY, or discard KEY. Nothing was done.');
  }
  const resolved = await outbox.resolve(id, hashKey(id, key), decision);
  const write = `the write ${key} of ${nameOf(instance)}`;
  if (resolved === undefined) throw new Error(`There is no ${write.slice(4)}. Nothing was done.`);
  const { from, to } = resolved;
  const isDone = from !== to || (decision === 'retry' && to === 'pending');
  if (!isDone) {
    const why = from === 'sending' ? 'is being sent' : `is ${from} and cannot be sent any more`;
    throw new Error(`${write[0]?.toUpperCase()}${write.slice(1)} ${why}. Nothing was done.`);
  }
  const action = decision === 'retry' ? 'send-again' : 'end-write';
  await actions.add({ instanceId: id, resource: null, record: null, action, by: 'command' });
  const now = { pending: 'is sent again', done: 'counts as arrived', discarded: 'is discarded' }[
    to as 'done'
  ];
  print(`${write[0]?.toUpperCase()}${write.slice(1)} ${now}.`);
  if (to === 'pending' && instance.status !== 'active') print(deliveryBegins(instance));
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
  psql ${url} ${AFTER_RESTORE.map((statement) => `--command="${statement}"`).join(' ')}

The second line makes the app ignore older jobs in Redis, and hold back writes that the service may have. ${PASSWORD_HINT}`);
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

function nameOf({ name }: Instance): string {
  return printable(name);
}

/** Replaces control characters: texts come from the service, and terminals obey them. */
function printable(text: string): string {
  return text.replaceAll(/\p{C}/gu, '?');
}

/** Runs a command on the database. @param loadSettings imports the fork's settings, for a command with events */
function onDatabase(
  run: (context: Context) => Promise<void>,
  kind: ProcessKind = 'database',
  loadSettings?: () => Promise<unknown>,
): Promise<void> {
  const work = async ({ config, logger, loadEvents }: Boot, signal: AbortSignal) => {
    const db = await openExistingDatabase(config.databaseUrl);
    try {
      const database = withoutPassword(config.databaseUrl);
      await run({ db, config, logger, loadEvents, database, signal });
    } finally {
      await db.destroy();
    }
  };
  return inProcess(kind, work, loadSettings);
}

function onFile(run: (config: Config, file: string) => Promise<void>, file: string): Promise<void> {
  return inProcess('database', ({ config }) => run(config, resolve(file)));
}

/** Runs a command, and ends the process: with code 1 if the command throws. */
async function inProcess(
  kind: ProcessKind,
  run: (boot: Boot, signal: AbortSignal) => Promise<void>,
  loadSettings?: () => Promise<unknown>,
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
  await boot({ kind, settings: loadSettings, isCommand: true }, work);
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
    // The options aside, such as [--delete-data].
    const names = command.usage.split(' ').filter((name) => /^\[?\w/.test(name));
    const required = names.filter((name) => !/[[\]]/.test(name));
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

import { fork } from 'node:child_process';
import { type App, createApp, type Fork } from './app.ts';
import { EventSender } from './changes/app-events.ts';
import { childFlags } from './changes/delivery-process.ts';
import type { HandlerAnswer } from './check-handler.ts';
import { type Config, loadConfig, readEnvFile, readEnvironment } from './config/config.ts';
import { NO_SETTINGS, readSettings } from './config/fork-settings.ts';
import { ConfigError, type ProcessKind, VARIABLES } from './config/variables.ts';
import { loadEventHandler } from './fork.ts';
import { CompanyFinder } from './runtime/company-finder.ts';
import { createLogger, type Logger } from './runtime/logging.ts';
import { openRedis } from './runtime/private-redis.ts';
import { processFacts } from './runtime/process-facts.ts';
import { INTERRUPTED_CODE, installShutdown, type Shutdown } from './runtime/shutdown.ts';
import { type TakenPort, takePort } from './web/listen.ts';

const HANDLER_ENDED = 'Your handler, src/integration/handler.ts, ends the process when it loads.';

/** What an entry point works with. */
export interface Boot {
  config: Config;
  logger: Logger;
  shutdown: Shutdown;
  /** Loads the integrator's event handler. @param load imports the module */
  loadEvents(load: () => Promise<unknown>): Promise<EventSender>;
  /** Opens Redis and the database, and creates the app. The shutdown closes all three. */
  openApp(own: OwnModules): Promise<App>;
}

/** The fork's parts. The event handler is imported once the configuration is read. */
interface OwnModules extends Pick<Fork, 'resources' | 'appInfo' | 'ownViews' | 'hasSearch'> {
  events: () => Promise<unknown>;
}

interface BootOptions {
  /** It decides which variables count. */
  kind: ProcessKind;
  /** Imports the fork's settings, for a process with events. */
  settings?: (() => Promise<unknown>) | undefined;
  /** A command reads its arguments itself, and a signal ends it with code 130. */
  isCommand?: boolean;
}

/**
 * Finds out whether there is a handler. Its module is loaded in a process of its own: what it does later, as in a timer,
 * must not reach this one.
 *
 * @throws Error that says what is wrong, and where
 */
async function hasHandler(): Promise<boolean> {
  // The debugger's port is for the delivery process.
  const execArgv = childFlags().filter((flag) => !flag.startsWith('--inspect'));
  const child = fork(new URL('./check-handler.ts', import.meta.url), { execArgv });
  const answer = await new Promise<HandlerAnswer>((resolve) => {
    // Under `node --watch` the child also names the files that it loads.
    child.on('message', (message: HandlerAnswer | object) => 'hasHandler' in message && resolve(message));
    child.once('exit', () => resolve({ hasHandler: false, problem: HANDLER_ENDED }));
  });
  child.kill('SIGKILL');
  if (answer.problem !== undefined) throw new Error(answer.problem);
  return answer.hasHandler;
}

/** Whether the app, Node or npm reads a variable. */
function isKnown(name: string): boolean {
  return (
    Object.hasOwn(VARIABLES, name) ||
    /^(?:NODE_|npm_|PG[A-Z]|POSTGRES_|COMPOSE_|OTEL_|TZ$)|proxy$/i.test(name)
  );
}

/** Takes the port for health checks and metrics of a worker, if one is set. */
export async function takeWorkerPort({ host, workerPort: port }: Config): Promise<TakenPort | undefined> {
  return port === undefined ? undefined : takePort({ host, port, variable: 'WORKER_PORT' });
}

/** Runs the workers until the shutdown. It stops them before it closes what was opened earlier. */
export function runWorkers(app: App, shutdown: Shutdown): void {
  const workers = app.startWorkers();
  shutdown.add('workers', () => workers.close());
}

/**
 * Reads the arguments of a command. An unknown one ends the process with a plain sentence: a person who asks
 * for a dry run, or for another port, must not get the real thing.
 *
 * @param usage what it takes, as a sentence
 * @param known all that it takes; nothing by default
 * @returns the known ones that were given
 */
export function commandArguments(
  usage = 'This command takes no arguments: its settings are variables, see .env.example.',
  known: readonly string[] = [],
): ReadonlySet<string> {
  const given = process.argv.slice(2);
  const unknown = given.filter((argument) => !known.includes(argument));
  if (unknown.length > 0) {
    process.stderr.write(`${unknown.join(' ')} is not understood, and nothing was done. ${usage}\n`);
    process.exit(2);
  }
  return new Set(given);
}

/** Reads the configuration, then runs an entry point. An error ends the process with its message and code 1. */
export async function boot(
  { kind, settings: load, isCommand = false }: BootOptions,
  run: (boot: Boot) => Promise<void>,
): Promise<void> {
  if (!isCommand) commandArguments();
  try {
    const env = readEnvironment();
    const { settings, names, problems } = load === undefined ? NO_SETTINGS : await readSettings(load, env);
    const config = loadConfig(env, { kind, others: problems });
    const facts = processFacts();
    const companies = new CompanyFinder();
    const logger: Logger = createLogger(config, {
      facts,
      companies,
      onError: (error, { message }) => events.send({ type: 'error', error, message }),
    });
    const events = new EventSender(logger);
    if (config.ignored.length > 0 && kind !== 'database' && kind !== 'reencrypt') {
      logger.info(`set, but without effect on this command: ${config.ignored.join(', ')}`);
    }
    const unheard = Object.keys(readEnvFile()).filter((name) => !isKnown(name) && !names.includes(name));
    if (unheard.length > 0 && load !== undefined) {
      logger.warn(
        `in .env, but neither a variable of the app nor in src/integration/settings.ts: ${unheard.join(', ')}`,
      );
    }
    const shutdown = installShutdown({ logger, signalCode: isCommand ? INTERRUPTED_CODE : 0 });
    shutdown.add('events', () => events.close());
    const loadEvents: Boot['loadEvents'] = async (load) => {
      const handler = await loadEventHandler(load);
      events.handler = handler && ((event) => handler(event, { settings }));
      return events;
    };
    const openApp = async (own: OwnModules) => {
      const redis = await openRedis({ redisUrl: config.redisUrl, dir: config.dataDir, logger });
      shutdown.add('redis', () => redis.release());
      const fork = { ...own, hasHandler: await hasHandler(), events: await loadEvents(own.events) };
      const onLost = (reason: string) => {
        logger.fatal(reason);
        void shutdown.stop('the database is lost', 1);
      };
      const app = await createApp(config, redis.url, logger, fork, { facts, onLost, companies });
      shutdown.add(
        'app',
        () => app.close(),
        () => app.end(),
      );
      return app;
    };
    try {
      await run({ config, logger, shutdown, loadEvents, openApp });
    } catch (error) {
      // People read the message. The stack goes to the log, in development with LOG_LEVEL=debug.
      logger[config.production ? 'fatal' : 'debug']({ err: error }, 'the start failed');
      process.stderr.write(`\n${error instanceof Error ? error.message : String(error)}\n\n`);
      await shutdown.stop('the start failed', 1);
    }
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    process.stderr.write(`${error.message}\n`);
    process.exitCode = 1;
  }
}

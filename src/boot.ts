import { type App, createApp } from './app.ts';
import { type EventHandler, EventSender } from './changes/app-events.ts';
import type { ChangeHandler } from './changes/change-handler.ts';
import { type Config, loadConfig, readEnvironment } from './config/config.ts';
import { ConfigError, type ProcessKind } from './config/variables.ts';
import { commandArguments } from './contract/command-arguments.ts';
import { createLogger, type Logger } from './runtime/logging.ts';
import { openRedis } from './runtime/private-redis.ts';
import { processFacts } from './runtime/process-facts.ts';
import { INTERRUPTED_CODE, installShutdown, type Shutdown } from './runtime/shutdown.ts';

/** What an entry point works with. */
export interface Boot {
  config: Config;
  logger: Logger;
  shutdown: Shutdown;
  /** Loads the integrator's event handler. */
  loadEvents(): Promise<EventSender>;
  /** Opens Redis and the database, and creates the app. The shutdown closes all three. */
  openApp(): Promise<App>;
}

/** Runs the workers until the shutdown. It stops them before it closes what was opened earlier. */
export function runWorkers(app: App, shutdown: Shutdown): void {
  const workers = app.startWorkers();
  shutdown.add('workers', () => workers.close());
}

/** Excludes classes, which `typeof` calls functions. */
function isCallable(value: unknown): boolean {
  return typeof value === 'function' && !/^class\b/.test(Function.prototype.toString.call(value));
}

/**
 * Loads a function of the integrator. The configuration comes first, as the module may read variables of `.env`.
 *
 * @throws Error that says what is wrong, and where
 */
async function loadOwn<Own>(what: string, file: string, name: string): Promise<Own | undefined> {
  const path = `src/integration/${file}`;
  const module: Record<string, unknown> = await import(`./integration/${file}`).catch((cause: unknown) => {
    const where = cause instanceof Error ? cause.stack : String(cause);
    throw new Error(`Your ${what}, ${path}, does not load:\n\n${where}`, { cause });
  });
  const own = module[name];
  if (name in module && (own === undefined || isCallable(own))) return own as Own | undefined;
  throw new Error(
    `Your ${what}, ${path}, exports no function ${name}. Export a function or undefined under this name.`,
  );
}

/**
 * Reads the configuration, then runs an entry point. An error ends the process with its message and code 1.
 *
 * @param kind decides which variables count
 * @param options.isCommand a command reads its arguments itself, and a signal ends it with code 130
 */
export async function boot(
  kind: ProcessKind,
  run: (boot: Boot) => Promise<void>,
  { isCommand = false } = {},
): Promise<void> {
  if (!isCommand) commandArguments();
  try {
    const config = loadConfig(readEnvironment(), { kind });
    const facts = processFacts();
    const logger: Logger = createLogger(config, {
      facts,
      onError: (error, { message }) => events.send({ type: 'error', error, message }),
    });
    const events = new EventSender(logger);
    if (config.ignored.length > 0 && kind !== 'database' && kind !== 'reencrypt') {
      logger.info(`set, but without effect on this command: ${config.ignored.join(', ')}`);
    }
    const shutdown = installShutdown({ logger, signalCode: isCommand ? INTERRUPTED_CODE : 0 });
    shutdown.add('events', () => events.close());
    const loadEvents = async () => {
      events.handler = await loadOwn<EventHandler>('event handler', 'events.ts', 'onEvent');
      return events;
    };
    const openApp = async () => {
      const redis = await openRedis({ redisUrl: config.redisUrl, dir: config.dataDir, logger });
      shutdown.add('redis', () => redis.release());
      const handler = await loadOwn<ChangeHandler>('handler', 'handler.ts', 'onChanges');
      const app = await createApp(config, redis.url, logger, { handler, events: await loadEvents(), facts });
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

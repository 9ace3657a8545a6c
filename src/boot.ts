import { type App, createApp } from './app.ts';
import { type EventHandler, EventSender } from './changes/app-events.ts';
import type { ChangeHandler } from './changes/change-handler.ts';
import { type Config, loadConfig, readEnvironment } from './config/config.ts';
import { ConfigError, type ProcessKind } from './config/variables.ts';
import { commandArguments } from './contract/command-arguments.ts';
import { createLogger, type Logger } from './runtime/logging.ts';
import { openRedis } from './runtime/private-redis.ts';
import { processFacts } from './runtime/process-facts.ts';
import { installShutdown, type Shutdown } from './runtime/shutdown.ts';

/** A process with everything that it needs, before it begins to work. */
export interface Boot {
  config: Config;
  logger: Logger;
  shutdown: Shutdown;
  /** Loads the integrator's event handler, and answers what sends events to it. */
  loadEvents(): Promise<EventSender>;
  /** Opens Redis and the database, and puts the app together; both are closed at the shutdown. */
  openApp(): Promise<App>;
}

/** Runs the workers of this process until its shutdown, which ends them before what has been opened until now. */
export function runWorkers(app: App, shutdown: Shutdown): void {
  const workers = app.startWorkers();
  shutdown.add('workers', () => workers.close());
}

/** A class is a function, too, that cannot be called. */
function isCallable(value: unknown): boolean {
  return typeof value === 'function' && !/^class\b/.test(Function.prototype.toString.call(value));
}

/**
 * Loads a function of the integrator's. Not before the configuration: what stands around it may read the environment, and
 * so the `.env` file.
 *
 * @throws Error that says where something is wrong with it
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
    `Your ${what}, ${path}, exports no function ${name}: export it under this name, or undefined.`,
  );
}

/**
 * Runs an entry point: reads the configuration, then hands over. Whatever goes wrong before the work has begun ends
 * the process with a plain sentence.
 *
 * @param kind decides which variables count
 * @param options.takesArguments whether the entry point reads what follows its command itself; else nothing may
 * @param options.signalCode the exit code after a signal; 0 by default
 */
export async function boot(
  kind: ProcessKind,
  run: (boot: Boot) => Promise<void>,
  { takesArguments = false, signalCode = 0 }: { takesArguments?: boolean; signalCode?: number } = {},
): Promise<void> {
  if (!takesArguments) commandArguments();
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
    const shutdown = installShutdown({ logger, signalCode });
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
      // For people a plain sentence; the stack is for a log that machines read, or for who asks for it.
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

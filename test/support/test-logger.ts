import { createLogger, type Logger } from '../../src/runtime/logging.ts';

/** A line of the log, parsed. */
export type LogLine = Record<string, unknown> & { level: string; msg?: string };

/** A logger whose lines can be looked at. */
export interface TestLogger {
  logger: Logger;
  lines: LogLine[];
  /** The lines as they were written. */
  text(): string;
}

/** Makes a logger, of every level, that keeps its lines. */
export function testLogger(): TestLogger {
  const written: string[] = [];
  const lines: LogLine[] = [];
  const destination = {
    write: (line: string) => {
      written.push(line);
      lines.push(JSON.parse(line));
    },
  };
  const logger = createLogger({ logLevel: 'trace', production: true }, { destination });
  return { logger, lines, text: () => written.join('') };
}

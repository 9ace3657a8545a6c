import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Request, type Response, Router } from 'express';
import { CopyRemovedError } from '../../store/records.ts';
import { Downloads } from '../downloads.ts';
import { ownInstance, ownInstanceId, pathValue } from '../own-instance.ts';
import type { WebDependencies } from '../web-dependencies.ts';
import { notFound, WebError } from '../web-error.ts';

/** Lines are sent together up to about this size (characters): few writes, flat memory. */
const CHUNK_LENGTH = 64 * 1_024;

/** How often it is looked whether the browser still sees what it downloads, in milliseconds. */
const LOOK_EVERY_MS = 1_000;

/** Joins documents to chunks of whole lines. */
async function* lines(documents: AsyncIterable<string>): AsyncGenerator<string> {
  let chunk: string[] = [];
  let length = 0;
  for await (const document of documents) {
    chunk.push(document, '\n');
    length += document.length + 1;
    if (length < CHUNK_LENGTH) continue;
    yield chunk.join('');
    chunk = [];
    length = 0;
  }
  if (length > 0) yield chunk.join('');
}

/** A file's name that no system trips over. */
function fileName(company: string, resource: string): string {
  const plain = company
    .normalize('NFKD')
    .replace(/[^\w]+/g, '-')
    .replace(/^-+|-+$/g, '')
    .toLowerCase()
    .slice(0, 60);
  return `${plain || 'company'}-${resource}.ndjson`;
}

/** What was read ahead, then the rest. */
async function* resume(first: string, rest: AsyncIterable<string>): AsyncGenerator<string> {
  yield first;
  yield* rest;
}

/**
 * Breaks a download off when the browser that has asked for it does not see the instance any more. A slow client takes
 * nothing for minutes, so the access is checked every second; the reset also drops what the system has buffered.
 *
 * @param signal ends the watch
 */
async function breakOffUnseen(
  res: Response,
  sees: () => Promise<boolean>,
  signal: AbortSignal,
): Promise<void> {
  do {
    await sleep(LOOK_EVERY_MS, undefined, { signal, ref: false });
  } while (await sees());
  if (!signal.aborted) res.socket?.resetAndDestroy();
}

/** What a stream says of a client that goes away in the middle of a download, and of one that has before it. */
const GONE_AWAY: readonly unknown[] = ['ERR_STREAM_PREMATURE_CLOSE', 'ERR_STREAM_UNABLE_TO_PIPE'];

/** A client that leaves, a log-out and a deleted copy are no errors. */
function isEndedEarly(error: unknown): boolean {
  if (error instanceof CopyRemovedError) return true;
  return error instanceof Error && 'code' in error && GONE_AWAY.includes(error.code);
}

/** Where an answer comes without chunks, as to HTTP/1.0, the end of the connection is its end, whatever is missing. */
function checkVersion(req: Request): void {
  if (req.httpVersion === '1.1') return;
  throw new WebError(
    505,
    'Downloads need HTTP/1.1',
    `This request has reached the app over HTTP/${req.httpVersion}, where a download that breaks off looks like a whole one. The people who run the app have to let the proxy in front of it ask by HTTP/1.1, in nginx with “proxy_http_version 1.1;”.`,
  );
}

function headers(name: string): Record<string, string> {
  return {
    'Content-Type': 'application/x-ndjson',
    'Cache-Control': 'no-store',
    'Content-Disposition': `attachment; filename="${name}"`,
  };
}

/**
 * A whole number from the query.
 *
 * @throws WebError 400 for anything else
 */
function wholeNumber(req: Request, name: string, otherwise: number): number {
  const given = req.query[name];
  if (given === undefined) return otherwise;
  if (typeof given === 'string' && /^\d+$/.test(given) && Number.isSafeInteger(Number(given)))
    return Number(given);
  throw new WebError(400, 'Bad request', `“${name}” has to be a whole number, 0 or more.`);
}

/**
 * Downloads as newline-delimited JSON, each document as the service sent it: all live records of a list, or its change
 * feed. What is not the whole ends with a broken connection, which only HTTP/1.1 can tell: others are answered 505.
 */
export function exportRoutes(deps: WebDependencies): Router {
  const router = Router();
  const downloads = new Downloads();

  router.get('/instances/:id/:resource.ndjson', (req, res) =>
    send(req, res, '', (id, resource) => deps.records.stream(id, resource)),
  );

  router.get('/instances/:id/changes/:resource.ndjson', (req, res) =>
    send(req, res, '-changes', (id, resource) => {
      const range = {
        after: wholeNumber(req, 'after', 0),
        limit: wholeNumber(req, 'limit', Number.POSITIVE_INFINITY),
      };
      return deps.changes.feed(id, resource, range);
    }),
  );

  async function send(
    req: Request,
    res: Response,
    suffix: string,
    open: (instanceId: string, resource: string) => AsyncIterable<string>,
  ): Promise<void> {
    const { browserId } = await ownInstanceId(req, deps);
    const status = await ownInstance(req, deps);
    const resource = deps.resources.find(({ name }) => name === pathValue(req, 'resource'));
    if (!resource) throw notFound();
    checkVersion(req);
    const documents = open(status.id, resource.name);
    const name = fileName(status.name, resource.name + suffix);
    if (req.method === 'HEAD') {
      res.set(headers(name)).end();
      return;
    }
    const end = downloads.begin(browserId, status.id);
    // While the database is away nobody knows; the next look tells.
    const sees = async () =>
      res.locals.isOperator === true || deps.browsers.sees(browserId, status.id).catch(() => true);
    const over = new AbortController();
    breakOffUnseen(res, sees, over.signal).catch(() => undefined);
    try {
      const chunks = lines(documents);
      // A store that fails at once gets its error page: nothing has been sent before the first chunk is there.
      const first = await chunks.next();
      res.set(headers(name));
      if (first.done) res.end();
      else await pipeline(Readable.from(resume(first.value, chunks), { highWaterMark: 1 }), res);
    } catch (error) {
      if (!isEndedEarly(error)) throw error;
      // Where nothing had been sent yet, nothing has broken the connection either.
      res.destroy();
      res.locals.log.debug('download ended early');
    } finally {
      over.abort();
      end();
    }
  }

  return router;
}

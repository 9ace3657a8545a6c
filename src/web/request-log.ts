import { randomUUID } from 'node:crypto';
import type { Request, RequestHandler } from 'express';
import type { Logger } from 'pino';
import { cutPath } from '../client/cut-text.ts';

declare global {
  namespace Express {
    interface Locals {
      requestId: string;
      log: Logger;
      /** Whether the request has shown the operator's password. */
      isOperator?: boolean;
    }
  }
}

/** What other systems send as an id: enough for a UUID or a trace id, nothing that could forge a log line. */
const SANE_REQUEST_ID = /^[\w.:-]{8,64}$/;

/** Asked every few seconds by machines and open pages: worth a line only while somebody looks for it. */
const QUIET_PATHS = /^\/(?:healthz|readyz|metrics|assets\/.*|instances\/[^/]+\/(?:status|live))$/;

/** No address of the app is longer: of others the beginning is logged, in UTF-16 units. */
const LONGEST_PATH = 256;

/** What is measured of a request to the web app. */
export interface RequestFacts {
  method: string;
  /** The route's pattern (`/instances/:id`), never the path, so that there are few of them; `other` for none. */
  route: string;
  /** 0 when the client left before an answer had begun. */
  status: number;
  durationMs: number;
}

/** A question mark, also encoded, once or several times over: who encoded it, meant a query all the same. */
const QUERY_MARK = /\?|%(?:25)*3f/i;

/** A slash, also encoded likewise. */
const SLASH = /\/|%(?:25)*2f/gi;

/** So many parts of a path are logged as they came: instance and list are among them, and no record's id is. */
const SHOWN_PARTS = 3;

/** The path of an address as it came, without the query, which may carry codes and searches. */
function pathOf(address: string): string {
  const end = address.search(QUERY_MARK);
  return end === -1 ? address : address.slice(0, end);
}

/** The pattern that the address matched. Assets are files, which no route knows one by one. */
function routeOf(req: Request, path: string): string {
  const pattern: unknown = req.route?.path;
  if (typeof pattern === 'string') return pattern;
  return path.startsWith('/assets/') ? '/assets/*' : 'other';
}

/**
 * The path as it is logged. What comes behind the parts that say which instance and which list is a record's id, which is
 * the service's to choose, like all of a record: the name that the route has for it stands there, if there is a route.
 */
function shownPath(req: Request, path: string): string {
  const end = [...path.matchAll(SLASH)][SHOWN_PARTS]?.index;
  if (end === undefined) return cutPath(path, LONGEST_PATH);
  const pattern = req.baseUrl === '' ? routeOf(req, path).split('/') : [];
  const names = pattern.slice(1 + SHOWN_PARTS);
  return cutPath(`${path.slice(0, end)}/${names.join('/') || '…'}`, LONGEST_PATH);
}

/**
 * Gives every request an id (taken from `x-request-id` when that is sane) and a logger that carries it,
 * and writes one line when the answer has gone: never a query, a cookie, a body or a record's id. An error of the answer
 * itself is a line as well, and nothing else.
 *
 * @param onRequest called once a request, when it is over
 */
export function requestLog(logger: Logger, onRequest?: (facts: RequestFacts) => void): RequestHandler {
  return (req, res, next) => {
    const given = req.get('x-request-id');
    const requestId = given && SANE_REQUEST_ID.test(given) ? given : randomUUID();
    const log = logger.child({ requestId });
    const started = performance.now();
    const path = pathOf(req.originalUrl);
    res.locals.requestId = requestId;
    res.locals.log = log;
    res.setHeader('X-Request-Id', requestId);
    // What nobody listens to would end the process.
    res.on('error', (error) => log.error({ err: error }, 'an answer could not be written'));
    res.once('close', () => {
      const durationMs = performance.now() - started;
      const status = res.headersSent ? res.statusCode : 0;
      onRequest?.({ method: req.method, route: routeOf(req, path), status, durationMs });
      const facts = {
        method: req.method,
        path: shownPath(req, path),
        status,
        ms: Math.round(durationMs),
        ...(res.writableFinished ? {} : { aborted: true }),
      };
      if (status >= 500) log.error(facts, 'request');
      else if (req.method !== 'POST' && QUIET_PATHS.test(path)) log.debug(facts, 'request');
      else log.info(facts, 'request');
    });
    next();
  };
}
